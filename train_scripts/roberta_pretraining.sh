#!/usr/bin/env bash
# Pre-training of HAT's encoder on text of your own: 8,192 rows of 512 tokens an update, 500,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train roberta_pretraining "$@"
