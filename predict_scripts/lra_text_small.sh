#!/usr/bin/env bash
# Labels of the 25,000 test reviews and their score: results/lra_text_small/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_text_small "$@"
