#!/usr/bin/env bash
# WikiHop with ERNIE-Sparse (Liu et al. 2022, Tables 4 and 9).
# Flags: configs/ernie_sparse_wikihop.yaml; the whole command: DRY_RUN=1 train_scripts/ernie_sparse_wikihop.sh
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_wikihop "$@"
