#!/usr/bin/env bash
# MultiNLI with HAT's encoder (Rohde et al. 2021, section 7, Table 8).
# Flags: configs/mnli.yaml; the whole command: DRY_RUN=1 train_scripts/mnli.sh
exec "$(dirname "$0")/../scripts/hat" recipe train mnli "$@"
