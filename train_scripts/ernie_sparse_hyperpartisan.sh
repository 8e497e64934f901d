#!/usr/bin/env bash
# Hyperpartisan news with ERNIE-Sparse: 16 articles an update, 660 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_hyperpartisan "$@"
