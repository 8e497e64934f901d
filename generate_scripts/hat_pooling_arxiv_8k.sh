#!/usr/bin/env bash
# arXiv with HAT on Poolingformer's encoder, 8,192 tokens.
# Flags: configs/hat_pooling_arxiv_8k.yaml; the whole command: DRY_RUN=1 generate_scripts/hat_pooling_arxiv_8k.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate hat_pooling_arxiv_8k "$@"
