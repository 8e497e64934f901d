#!/usr/bin/env bash
# Answers to the 11,873 development questions of SQuAD 2.0 and their F1: results/squad2/valid.jsonl, and beside it
# predictions.json and null_odds.json for the official script.
# Paper (Table 8, F1): HAT 79.4, RoBERTa-base 79.7. Ours: not run yet.
# First: train_scripts/squad2.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict squad2 "$@"
