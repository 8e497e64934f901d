#!/usr/bin/env bash
# Answers to the 11,873 development questions of SQuAD 2.0 and their F1: results/squad2/valid.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict squad2 "$@"
