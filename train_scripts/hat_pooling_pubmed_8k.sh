#!/usr/bin/env bash
# PubMed with HAT on Poolingformer's encoder, 8,192 tokens.
# Flags: configs/hat_pooling_pubmed_8k.yaml; the whole command: DRY_RUN=1 train_scripts/hat_pooling_pubmed_8k.sh
exec "$(dirname "$0")/../scripts/hat" recipe train hat_pooling_pubmed_8k "$@"
