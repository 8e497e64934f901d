#!/usr/bin/env bash
# Papers of arXiv in eleven categories with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
# It needs the data and the checkpoint of train_scripts/ernie_sparse_arxiv_categories.sh.
# Another split or model: hat recipe predict ernie_sparse_arxiv_categories [FLAGS].
set -euo pipefail
hat predict checkpoints/ernie_sparse_arxiv_categories/checkpoint_best.pt data-bin/ernie_sparse_arxiv_categories \
    --split test \
    --out results/ernie_sparse_arxiv_categories/test.jsonl \
    --overwrite \
    --batch-size 8
hat score classification results/ernie_sparse_arxiv_categories/test.jsonl \
    --references data-bin/ernie_sparse_arxiv_categories/text/test.jsonl \
    --out results/ernie_sparse_arxiv_categories/test.score.json
