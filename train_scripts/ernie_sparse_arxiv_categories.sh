#!/usr/bin/env bash
# Categories of arXiv papers with ERNIE-Sparse: 24 papers an update, each in two passes, 12,090 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_arxiv_categories "$@"
