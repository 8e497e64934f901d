#!/usr/bin/env bash
# XSum from BART-large (Rohde et al. 2021, Table 4).
# Flags: configs/xsum.yaml; the whole command: DRY_RUN=1 generate_scripts/xsum.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate xsum "$@"
