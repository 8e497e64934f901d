#!/usr/bin/env bash
# arXiv with Poolingformer, 4,096 tokens (Zhang et al. 2021, Table 4).
# Flags: configs/poolingformer_arxiv_4k.yaml; the whole command: DRY_RUN=1 generate_scripts/poolingformer_arxiv_4k.sh
exec "$(dirname "$0")/../scripts/hat" recipe generate poolingformer_arxiv_4k "$@"
