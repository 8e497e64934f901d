#!/usr/bin/env bash
# Self-pretraining for the small model of ListOps: 32 sequences an update, 1,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_listops_small_pretraining "$@"
