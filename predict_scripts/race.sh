#!/usr/bin/env bash
# Choices for the 4,934 test questions of RACE and their accuracy: results/race/test.jsonl.
# Paper (Table 8, accuracy): HAT 67.3, RoBERTa-base 65.6. Ours: not run yet.
# First: train_scripts/race.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict race "$@"
