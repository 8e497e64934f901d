#!/usr/bin/env bash
# TED17 Chinese-English, whole talks (Rohde et al. 2021, section 4.2, Table 7): 8,192 tokens x 2 on one V100 an update.
# Flags: configs/ted17_zh_en.yaml; the whole command: DRY_RUN=1 generate_scripts/ted17_zh_en.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate ted17_zh_en "$@"
