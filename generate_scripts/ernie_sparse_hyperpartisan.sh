#!/usr/bin/env bash
# News: hyperpartisan, or not.
# paper: Liu et al. 2022, Tables 3 and 9, column Hyperpartisan
# needs: --root DIR, roberta.base, 1 GPU
#
# ERNIE-Sparse from RoBERTa-base. Alpha and roll are 0 in Table 9: one pass, so the batch is not halved. The paper
# does not print weight decay, dropout, Adam's betas and the decay of fine-tuning; weight decay and dropout are those
# of its pre-training (Table 8), the betas RoBERTa's (Liu et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/ernie_sparse_hyperpartisan.sh
# Written from configs/ernie_sparse_hyperpartisan.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/ernie_sparse_hyperpartisan
    --bpe gpt2  # RoBERTa's
    --segments none  # the model represents blocks of tokens by itself
    --max-source-tokens 1024  # Table 9
    --long-source truncate
)
[ -d data-bin/ernie_sparse_hyperpartisan ] ||
    hat preprocess hyperpartisan --root "${ROOT:?the folder of the release, see preprocess/hyperpartisan.py}" "${preprocess[@]}"

predict=(
    --split test  # ours; Table 3 has the development set: --split valid
    --out results/ernie_sparse_hyperpartisan/test.jsonl
    --overwrite
    --batch-size 8
)
hat predict checkpoints/ernie_sparse_hyperpartisan/checkpoint_best.pt \
    data-bin/ernie_sparse_hyperpartisan "${predict[@]}"
hat score classification results/ernie_sparse_hyperpartisan/test.jsonl \
    --references data-bin/ernie_sparse_hyperpartisan/text/test.jsonl \
    --out results/ernie_sparse_hyperpartisan/test.score.json
