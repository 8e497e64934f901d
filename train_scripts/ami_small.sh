#!/usr/bin/env bash
# The first 1,023 tokens of AMI meetings, about a sixth.
# Flags: configs/ami_small.yaml; the whole command: DRY_RUN=1 train_scripts/ami_small.sh
exec "$(dirname "$0")/../scripts/hat" recipe train ami_small "$@"
