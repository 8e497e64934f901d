#!/usr/bin/env bash
# Self-pretraining for the small model of Text: 32 sequences an update, 500 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_text_small_pretraining "$@"
