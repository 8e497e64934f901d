#!/usr/bin/env bash
# Hyperpartisan news: a small Hierarchical Attention Transformer from scratch, on a CPU.
exec "$(dirname "$0")/../scripts/hat" recipe train hyperpartisan_small "$@"
