#!/usr/bin/env bash
# TriviaQA on pages of Wikipedia with ERNIE-Sparse (Liu et al. 2022, Tables 4 and 9).
# It needs the data and the checkpoint of train_scripts/ernie_sparse_triviaqa.sh.
# Another split or model: hat recipe predict ernie_sparse_triviaqa [FLAGS].
set -euo pipefail
hat predict checkpoints/ernie_sparse_triviaqa/checkpoint_best.pt data-bin/ernie_sparse_triviaqa \
    --split valid \
    --out results/ernie_sparse_triviaqa/valid.jsonl \
    --overwrite \
    --batch-size 8 \
    --threshold no-answer=inf
hat score triviaqa results/ernie_sparse_triviaqa/valid.jsonl \
    --references data-bin/ernie_sparse_triviaqa/text/valid.jsonl \
    --out results/ernie_sparse_triviaqa/valid.score.json
