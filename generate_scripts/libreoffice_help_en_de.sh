#!/usr/bin/env bash
# Translations of the test pages, chunks joined, and their BLEU: results/libreoffice_help_en_de/test.jsonl.
# Paper: nothing on this text. Ours (document BLEU, three seeds): HAT 11.4, plain 11.7, the English text itself 5.8.
# First: train_scripts/libreoffice_help_en_de.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate libreoffice_help_en_de "$@"
