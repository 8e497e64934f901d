#!/usr/bin/env bash
# ListOps: the value of a nested expression, of 500 to 2,000 symbols.
# Flags: configs/lra_listops.yaml; the whole command: DRY_RUN=1 train_scripts/lra_listops.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_listops "$@"
