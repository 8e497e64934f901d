#!/usr/bin/env bash
# arXiv with HAT on Poolingformer's encoder, 16,384 tokens.
# Flags: configs/hat_pooling_arxiv_16k.yaml; the whole command: DRY_RUN=1 train_scripts/hat_pooling_arxiv_16k.sh
exec "$(dirname "$0")/../scripts/hat" recipe train hat_pooling_arxiv_16k "$@"
