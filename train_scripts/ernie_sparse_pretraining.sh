#!/usr/bin/env bash
# Pre-training of ERNIE-Sparse from RoBERTa-base: 256 rows of 4,096 tokens an update, 1,000,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_pretraining "$@"
