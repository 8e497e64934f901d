#!/usr/bin/env bash
# XSum: a small HAT whose encoder starts from MiniLM, on a CPU (BERT2RND of Rothe et al. 2020: a new decoder).
# Flags: configs/xsum_small.yaml; the whole command: DRY_RUN=1 generate_scripts/xsum_small.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate xsum_small "$@"
