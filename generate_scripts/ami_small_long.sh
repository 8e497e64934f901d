#!/usr/bin/env bash
# Summaries of the 20 AMI test meetings and their ROUGE: results/ami_small_long/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate ami_small_long "$@"
