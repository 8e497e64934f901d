#!/usr/bin/env bash
# Translations of the test pages, chunks joined, and their BLEU: results/libreoffice_help_en_de/test.jsonl.
# Paper: nothing on this text. Ours: not run yet.
# First: train_scripts/libreoffice_help_en_de.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate libreoffice_help_en_de "$@"
