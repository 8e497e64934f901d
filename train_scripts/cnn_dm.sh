#!/usr/bin/env bash
# CNN/DailyMail from BART-large (Rohde et al. 2021, Table 4).
# Flags: configs/cnn_dm.yaml; the whole command: DRY_RUN=1 train_scripts/cnn_dm.sh
exec "$(dirname "$0")/../scripts/hat" recipe train cnn_dm "$@"
