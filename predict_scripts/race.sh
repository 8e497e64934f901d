#!/usr/bin/env bash
# Choices for the 4,934 test questions of RACE and their accuracy: results/race/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict race "$@"
