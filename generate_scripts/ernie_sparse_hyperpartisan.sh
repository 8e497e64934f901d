#!/usr/bin/env bash
# Hyperpartisan news with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9). Alpha and roll are 0: one pass, so the batch
# is not halved.
# It needs the data and the checkpoint of train_scripts/ernie_sparse_hyperpartisan.sh.
# Another split or model: hat recipe predict ernie_sparse_hyperpartisan [FLAGS].
set -euo pipefail
hat predict checkpoints/ernie_sparse_hyperpartisan/checkpoint_best.pt data-bin/ernie_sparse_hyperpartisan \
    --split test \
    --out results/ernie_sparse_hyperpartisan/test.jsonl \
    --overwrite \
    --batch-size 8
hat score classification results/ernie_sparse_hyperpartisan/test.jsonl \
    --references data-bin/ernie_sparse_hyperpartisan/text/test.jsonl \
    --out results/ernie_sparse_hyperpartisan/test.score.json
