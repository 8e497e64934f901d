#!/usr/bin/env bash
# Hyperpartisan news with a Hierarchical Attention Transformer (Chalkidis et al. 2022).
# Flags: configs/hyperpartisan.yaml; the whole command: DRY_RUN=1 generate_scripts/hyperpartisan.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict hyperpartisan "$@"
