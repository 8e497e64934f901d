#!/usr/bin/env bash
# arXiv from BART-large (Rohde et al. 2021, Table 3).
# Flags: configs/arxiv.yaml; the whole command: DRY_RUN=1 train_scripts/arxiv.sh
exec "$(dirname "$0")/../scripts/hat" recipe train arxiv "$@"
