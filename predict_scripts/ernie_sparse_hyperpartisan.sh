#!/usr/bin/env bash
# Labels of the test articles and their scores: results/ernie_sparse_hyperpartisan/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_hyperpartisan "$@"
