#!/usr/bin/env bash
# Self-pretraining for recipe lra_listops_small.
# Flags: configs/lra_listops_small_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/lra_listops_small_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_listops_small_pretraining "$@"
