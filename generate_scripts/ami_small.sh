#!/usr/bin/env bash
# Summaries of the 20 AMI test meetings and their ROUGE: results/ami_small/test.jsonl.
# Paper (Table 6): HAT 52.27 / 20.15 / 50.57. Ours, from scratch: 46.92 / 16.80 / 45.47.
# First: train_scripts/ami_small.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate ami_small "$@"
