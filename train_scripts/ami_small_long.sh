#!/usr/bin/env bash
# Whole AMI meetings, up to 12,373 tokens: HAT's hierarchy on Poolingformer's encoder.
# Flags: configs/ami_small_long.yaml; the whole command: DRY_RUN=1 train_scripts/ami_small_long.sh
exec "$(dirname "$0")/../scripts/hat" recipe train ami_small_long "$@"
