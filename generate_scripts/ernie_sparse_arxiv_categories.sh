#!/usr/bin/env bash
# Papers of arXiv in eleven categories.
# paper: Liu et al. 2022, Tables 3 and 9, column Arxiv
# needs: --root DIR, roberta.base, 1 GPU
#
# ERNIE-Sparse from RoBERTa-base. The second pass of self-attention regularization doubles an update, so the paper
# halves the batch and doubles the updates (A.4): `update: batch-size` is half of the table's, and the epochs are the
# table's. The paper does not print weight decay, dropout, Adam's betas and the decay of fine-tuning; weight decay and
# dropout are those of its pre-training (Table 8), the betas RoBERTa's (Liu et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/ernie_sparse_arxiv_categories.sh
# Written from configs/ernie_sparse_arxiv_categories.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/ernie_sparse_arxiv_categories
    --bpe gpt2  # RoBERTa's
    --segments none  # the model represents blocks of tokens by itself
    --max-source-tokens 4096  # Table 9
    --long-source truncate
)
[ -d data-bin/ernie_sparse_arxiv_categories ] ||
    hat preprocess arxiv_categories --root "${ROOT:?the folder of the release, see preprocess/arxiv_categories.py}" "${preprocess[@]}"

predict=(
    --split test  # Table 3 has a development set, and Table 11 none
    --out results/ernie_sparse_arxiv_categories/test.jsonl
    --overwrite
    --batch-size 8
)
hat predict checkpoints/ernie_sparse_arxiv_categories/checkpoint_best.pt \
    data-bin/ernie_sparse_arxiv_categories "${predict[@]}"
hat score classification results/ernie_sparse_arxiv_categories/test.jsonl \
    --references data-bin/ernie_sparse_arxiv_categories/text/test.jsonl \
    --out results/ernie_sparse_arxiv_categories/test.score.json
