#!/usr/bin/env bash
# Pre-training on long pages of C4 from RoBERTa-base: 128 rows of 4,096 tokens an update, 50,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train hierarchical_transformer_pretraining "$@"
