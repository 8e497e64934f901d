#!/usr/bin/env bash
# Self-pretraining for Pathfinder of Long Range Arena: 32 sequences an update, 20,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_pathfinder_pretraining "$@"
