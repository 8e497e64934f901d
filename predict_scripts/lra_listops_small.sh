#!/usr/bin/env bash
# Values of the 2,000 short test expressions and their score: results/lra_listops_small/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_listops_small "$@"
