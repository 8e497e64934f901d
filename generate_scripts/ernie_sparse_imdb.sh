#!/usr/bin/env bash
# IMDB with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
# It needs the data and the checkpoint of train_scripts/ernie_sparse_imdb.sh.
# Another split or model: hat recipe predict ernie_sparse_imdb [FLAGS].
set -euo pipefail
hat predict checkpoints/ernie_sparse_imdb/checkpoint_best.pt data-bin/ernie_sparse_imdb \
    --split test \
    --out results/ernie_sparse_imdb/test.jsonl \
    --overwrite \
    --batch-size 8
hat score classification results/ernie_sparse_imdb/test.jsonl \
    --references data-bin/ernie_sparse_imdb/text/test.jsonl \
    --out results/ernie_sparse_imdb/test.score.json
