#!/usr/bin/env bash
# WikiHop: which candidate do several documents tell?
# paper: Liu et al. 2022, Tables 4 and 9, column WikiHop
# needs: --root DIR, roberta.base, 1 GPU
#
# ERNIE-Sparse from RoBERTa-base. The second pass of self-attention regularization doubles an update, so the paper
# halves the batch and doubles the updates (A.4): `update: batch-size` is half of the table's, and the epochs are the
# table's. The paper does not print weight decay, dropout, Adam's betas and the decay of fine-tuning; weight decay and
# dropout are those of its pre-training (Table 8), the betas RoBERTa's (Liu et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/ernie_sparse_wikihop.sh
# Written from configs/ernie_sparse_wikihop.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/ernie_sparse_wikihop
    --bpe gpt2  # RoBERTa's
    --segments sentences  # a marker before each document
    --max-source-tokens 4096  # Table 9
    --long-source truncate
)
[ -d data-bin/ernie_sparse_wikihop ] ||
    hat preprocess wikihop --root "${ROOT:?the folder of the release, see preprocess/wikihop.py}" "${preprocess[@]}"

predict=(
    --split valid  # the test part is hidden
    --out results/ernie_sparse_wikihop/valid.jsonl
    --overwrite
    --batch-size 8
)
hat predict checkpoints/ernie_sparse_wikihop/checkpoint_best.pt \
    data-bin/ernie_sparse_wikihop "${predict[@]}"
hat score classification results/ernie_sparse_wikihop/valid.jsonl \
    --references data-bin/ernie_sparse_wikihop/text/valid.jsonl \
    --out results/ernie_sparse_wikihop/valid.score.json
