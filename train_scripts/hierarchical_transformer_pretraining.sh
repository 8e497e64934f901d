#!/usr/bin/env bash
# Pre-training on long pages of C4 from RoBERTa-base, with the training settings in the model card of hierarchical-transformer-base-4096.
# Flags: configs/hierarchical_transformer_pretraining.yaml; the whole command: DRY_RUN=1 train_scripts/hierarchical_transformer_pretraining.sh
exec "$(dirname "$0")/../scripts/hat" recipe train hierarchical_transformer_pretraining "$@"
