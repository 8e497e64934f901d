#!/usr/bin/env bash
# Classes of the 10,000 test pictures and their score: results/lra_image/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_image "$@"
