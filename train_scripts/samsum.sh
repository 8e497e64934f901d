#!/usr/bin/env bash
# SAMSum from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 5).
# Flags: configs/samsum.yaml; the whole command: DRY_RUN=1 train_scripts/samsum.sh
exec "$(dirname "$0")/../scripts/hat" recipe train samsum "$@"
