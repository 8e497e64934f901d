#!/usr/bin/env bash
# Self-pretraining for Retrieval of Long Range Arena.
# Flags: configs/lra_retrieval_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/lra_retrieval_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_retrieval_pretraining "$@"
