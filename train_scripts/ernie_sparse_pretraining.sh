#!/usr/bin/env bash
# Pre-training of ERNIE-Sparse from RoBERTa-base (Liu et al. 2022, section 4.2.1, A.1 and Table 8).
# Flags: configs/ernie_sparse_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/ernie_sparse_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_pretraining "$@"
