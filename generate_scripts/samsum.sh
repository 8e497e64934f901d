#!/usr/bin/env bash
# Summaries of the 819 SAMSum test conversations and their ROUGE: results/samsum/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate samsum "$@"
