#!/usr/bin/env bash
# PubMed from BART-large (Rohde et al. 2021, Table 3).
# Flags: configs/pubmed.yaml; the whole command: DRY_RUN=1 train_scripts/pubmed.sh
exec "$(dirname "$0")/../scripts/hat" recipe train pubmed "$@"
