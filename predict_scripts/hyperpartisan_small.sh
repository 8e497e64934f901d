#!/usr/bin/env bash
# Labels of the test articles and their scores: results/hyperpartisan_small/test.jsonl.
# Paper: nothing on this split. Ours: benchmarks/README.md.
# First: train_scripts/hyperpartisan_small.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict hyperpartisan_small "$@"
