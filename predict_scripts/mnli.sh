#!/usr/bin/env bash
# Labels of the 9,815 pairs of dev_matched and their accuracy: results/mnli/valid.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict mnli "$@"
