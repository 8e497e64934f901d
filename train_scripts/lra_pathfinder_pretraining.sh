#!/usr/bin/env bash
# Self-pretraining for Pathfinder of Long Range Arena.
# Flags: configs/lra_pathfinder_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/lra_pathfinder_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_pathfinder_pretraining "$@"
