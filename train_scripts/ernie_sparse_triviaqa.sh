#!/usr/bin/env bash
# TriviaQA with ERNIE-Sparse: 16 questions with a page an update, each in two passes, 69,160 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ernie_sparse_triviaqa "$@"
