#!/usr/bin/env bash
# Hyperpartisan news with a Hierarchical Attention Transformer: 32 articles an update, 340 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train hyperpartisan "$@"
