#!/usr/bin/env bash
# Self-pretraining for recipe lra_text_small.
# Flags: configs/lra_text_small_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/lra_text_small_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_text_small_pretraining "$@"
