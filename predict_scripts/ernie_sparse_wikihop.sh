#!/usr/bin/env bash
# Answers to the 5,129 development questions of WikiHop and their accuracy: results/ernie_sparse_wikihop/valid.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_wikihop "$@"
