#!/usr/bin/env bash
# IMDB with a Hierarchical Attention Transformer (Chalkidis et al. 2022).
# Flags: configs/imdb.yaml; the whole command: DRY_RUN=1 generate_scripts/imdb.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict imdb "$@"
