#!/usr/bin/env bash
# WMT20 English-Czech, whole documents (Rohde et al. 2021, section 4.2, Table 7).
# Flags: configs/wmt20_en_cs.yaml; the whole command: DRY_RUN=1 generate_scripts/wmt20_en_cs.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate wmt20_en_cs "$@"
