#!/usr/bin/env bash
# Labels of the 17,437 test pairs and their score: results/lra_retrieval/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_retrieval "$@"
