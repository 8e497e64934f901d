#!/usr/bin/env bash
# Labels of the 9,815 pairs of dev_matched and their accuracy: results/mnli/valid.jsonl.
# Paper (Table 8, accuracy): HAT 84.7, RoBERTa-base 84.7. Ours: not run yet.
# dev_mismatched: --split test
# First: train_scripts/mnli.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" predict mnli "$@"
