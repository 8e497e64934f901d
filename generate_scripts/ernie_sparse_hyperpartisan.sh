#!/usr/bin/env bash
# Hyperpartisan news with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
# Flags: configs/ernie_sparse_hyperpartisan.yaml; the whole command: DRY_RUN=1 generate_scripts/ernie_sparse_hyperpartisan.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_hyperpartisan "$@"
