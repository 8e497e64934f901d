#!/usr/bin/env bash
# A label for each sentence of the test documents, and scores: results/sequential_sentences/test.jsonl.
# Paper: none, the data are your own. Ours: not run yet.
# First: train_scripts/sequential_sentences.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict sequential_sentences "$@"
