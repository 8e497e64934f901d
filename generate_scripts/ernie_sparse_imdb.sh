#!/usr/bin/env bash
# IMDB with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
# Flags: configs/ernie_sparse_imdb.yaml; the whole command: DRY_RUN=1 generate_scripts/ernie_sparse_imdb.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_imdb "$@"
