#!/usr/bin/env bash
# Pathfinder of Long Range Arena: 512 images an update, 62,400 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_pathfinder "$@"
