#!/usr/bin/env bash
# ListOps with expressions of 100 to 400 symbols and a small model, on a CPU.
# Flags: configs/lra_listops_small.yaml; the whole command: DRY_RUN=1 generate_scripts/lra_listops_small.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_listops_small "$@"
