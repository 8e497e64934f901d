#!/usr/bin/env bash
# Summaries of the 11,334 XSum test articles and their ROUGE: results/xsum/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate xsum "$@"
