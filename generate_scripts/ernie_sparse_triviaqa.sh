#!/usr/bin/env bash
# TriviaQA on pages of Wikipedia.
# paper: Liu et al. 2022, Tables 4 and 9, column TriviaQA
# needs: --root DIR, roberta.base, 1 GPU
#
# ERNIE-Sparse from RoBERTa-base. The second pass of self-attention regularization doubles an update, so the paper
# halves the batch and doubles the updates (A.4): `update: batch-size` is half of the table's, and the epochs are the
# table's. The paper does not print weight decay, dropout, Adam's betas and the decay of fine-tuning; weight decay and
# dropout are those of its pre-training (Table 8), the betas RoBERTa's (Liu et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/ernie_sparse_triviaqa.sh
# Written from configs/ernie_sparse_triviaqa.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/ernie_sparse_triviaqa
    --bpe gpt2  # RoBERTa's
    --segments none  # the model represents blocks of tokens by itself
    --max-source-tokens 4096  # Table 9
    --long-source truncate
)
[ -d data-bin/ernie_sparse_triviaqa ] ||
    hat preprocess triviaqa --root "${ROOT:?the folder of the release, see preprocess/triviaqa.py}" "${preprocess[@]}"

predict=(
    --split valid  # the test part has no answers
    --out results/ernie_sparse_triviaqa/valid.jsonl
    --overwrite
    --threshold no-answer=inf  # every question has an answer
    --batch-size 8
)
hat predict checkpoints/ernie_sparse_triviaqa/checkpoint_best.pt \
    data-bin/ernie_sparse_triviaqa "${predict[@]}"
hat score triviaqa results/ernie_sparse_triviaqa/valid.jsonl \
    --references data-bin/ernie_sparse_triviaqa/text/valid.jsonl \
    --out results/ernie_sparse_triviaqa/valid.score.json
