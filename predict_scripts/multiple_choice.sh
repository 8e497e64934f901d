#!/usr/bin/env bash
# Choices for the test questions and their accuracy: results/multiple_choice/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict multiple_choice "$@"
