#!/usr/bin/env bash
# IMDB with ERNIE-Sparse: 32 reviews an update, each in two passes, 14,080 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_imdb "$@"
