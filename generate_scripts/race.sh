#!/usr/bin/env bash
# RACE with HAT's encoder (Rohde et al. 2021, section 7, Table 8).
# Flags: configs/race.yaml; the whole command: DRY_RUN=1 generate_scripts/race.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict race "$@"
