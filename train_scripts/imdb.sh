#!/usr/bin/env bash
# IMDB with a Hierarchical Attention Transformer: 32 reviews an update, 14,080 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train imdb "$@"
