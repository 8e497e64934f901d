#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder (Rohde et al. 2021, section 7, Table 8).
# Flags: configs/squad2.yaml; the whole command: DRY_RUN=1 train_scripts/squad2.sh
exec "$(dirname "$0")/../scripts/hat" recipe train squad2 "$@"
