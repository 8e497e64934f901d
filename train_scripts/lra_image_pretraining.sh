#!/usr/bin/env bash
# Self-pretraining for Image of Long Range Arena.
# Flags: configs/lra_image_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/lra_image_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_image_pretraining "$@"
