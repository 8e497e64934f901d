#!/usr/bin/env bash
# The right one of several choices after a long text, with a Hierarchical Attention Transformer.
# Flags: configs/multiple_choice.yaml; the whole command: DRY_RUN=1 train_scripts/multiple_choice.sh
exec "$(dirname "$0")/../scripts/hat" recipe train multiple_choice "$@"
