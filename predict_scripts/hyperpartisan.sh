#!/usr/bin/env bash
# Labels of the test articles and their scores: results/hyperpartisan/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict hyperpartisan "$@"
