#!/usr/bin/env bash
# WikiHop with ERNIE-Sparse: 24 questions an update, each in two passes, 54,690 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_wikihop "$@"
