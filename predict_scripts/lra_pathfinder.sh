#!/usr/bin/env bash
# Labels of the 20,000 test images and their score: results/lra_pathfinder/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_pathfinder "$@"
