#!/usr/bin/env bash
# Choices for the test questions and their accuracy: results/multiple_choice/test.jsonl.
# Paper: none, the data are your own. Ours: not run yet.
# First: train_scripts/multiple_choice.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict multiple_choice "$@"
