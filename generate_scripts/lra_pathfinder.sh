#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve? 32 x 32 pixels, the hard part.
# Flags: configs/lra_pathfinder.yaml; the whole command: DRY_RUN=1 generate_scripts/lra_pathfinder.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_pathfinder "$@"
