#!/usr/bin/env bash
# Hyperpartisan news: a small Hierarchical Attention Transformer from scratch, in minutes on a CPU.
# Flags: configs/hyperpartisan_small.yaml; the whole command: DRY_RUN=1 generate_scripts/hyperpartisan_small.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict hyperpartisan_small "$@"
