#!/usr/bin/env bash
# WikiHop with ERNIE-Sparse (Liu et al. 2022, Tables 4 and 9).
# It needs the data and the checkpoint of train_scripts/ernie_sparse_wikihop.sh.
# Another split or model: hat recipe predict ernie_sparse_wikihop [FLAGS].
set -euo pipefail
hat predict checkpoints/ernie_sparse_wikihop/checkpoint_best.pt data-bin/ernie_sparse_wikihop \
    --split valid \
    --out results/ernie_sparse_wikihop/valid.jsonl \
    --overwrite \
    --batch-size 8
hat score classification results/ernie_sparse_wikihop/valid.jsonl \
    --references data-bin/ernie_sparse_wikihop/text/valid.jsonl \
    --out results/ernie_sparse_wikihop/valid.score.json
