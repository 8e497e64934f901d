#!/usr/bin/env bash
# Pre-training of HAT's encoder (Rohde et al. 2021, section 7).
# Flags: configs/roberta_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/roberta_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train roberta_pretraining "$@"
