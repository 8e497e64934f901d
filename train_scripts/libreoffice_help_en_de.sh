#!/usr/bin/env bash
# LibreOffice's help, English-German, page by page: a small HAT from scratch on a CPU.
# Paper: nothing on this text. Ours (document BLEU, three seeds): HAT 11.4, plain 11.7, the English text itself 5.8;
# 11 to 19 minutes on one busy CPU core.
# First:      python hat_fairseq/recipe.py preprocess libreoffice_help_en_de --root DIR
# Plain twin: train_scripts/libreoffice_help_en_de.sh --no-hierarchy --save-dir checkpoints/libreoffice_help_en_de-plain
# Then:       generate_scripts/libreoffice_help_en_de.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train libreoffice_help_en_de "$@"
