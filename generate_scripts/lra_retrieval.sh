#!/usr/bin/env bash
# Retrieval: does one paper cite the other? Two texts as bytes, each truncated to 4,000.
# Flags: configs/lra_retrieval.yaml; the whole command: DRY_RUN=1 generate_scripts/lra_retrieval.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_retrieval "$@"
