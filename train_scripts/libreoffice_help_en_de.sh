#!/usr/bin/env bash
# LibreOffice's help, English-German, page by page: a small HAT from scratch on a CPU.
# Flags: configs/libreoffice_help_en_de.yaml; the whole command: DRY_RUN=1 train_scripts/libreoffice_help_en_de.sh
exec "$(dirname "$0")/../scripts/hat" recipe train libreoffice_help_en_de "$@"
