#!/usr/bin/env bash
# Papers of arXiv in eleven categories with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
# Flags: configs/ernie_sparse_arxiv_categories.yaml; the whole command: DRY_RUN=1 train_scripts/ernie_sparse_arxiv_categories.sh
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_arxiv_categories "$@"
