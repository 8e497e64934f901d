#!/usr/bin/env bash
# Categories of the 3,345 test papers and their scores: results/ernie_sparse_arxiv_categories/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_arxiv_categories "$@"
