#!/usr/bin/env bash
# AMI meetings from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 6).
# Flags: configs/ami.yaml; the whole command: DRY_RUN=1 generate_scripts/ami.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate ami "$@"
