#!/usr/bin/env bash
# Answers on the 14,229 development pages of TriviaQA, and exact match and F1: results/ernie_sparse_triviaqa/valid.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict ernie_sparse_triviaqa "$@"
