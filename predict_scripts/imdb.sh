#!/usr/bin/env bash
# Labels of the 25,000 test reviews and their scores: results/imdb/test.jsonl.
# Paper: nothing on this set. Ours: not run yet.
# First: train_scripts/imdb.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict imdb "$@"
