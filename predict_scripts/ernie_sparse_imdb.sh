#!/usr/bin/env bash
# Labels of the 25,000 test reviews and their scores: results/ernie_sparse_imdb/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_imdb "$@"
