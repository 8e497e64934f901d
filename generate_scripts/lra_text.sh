#!/usr/bin/env bash
# Text: reviews of films as bytes, truncated to 1,000.
# Flags: configs/lra_text.yaml; the whole command: DRY_RUN=1 generate_scripts/lra_text.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_text "$@"
