#!/usr/bin/env bash
# Summaries of the 6 ICSI test meetings and their ROUGE: results/icsi/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate icsi "$@"
