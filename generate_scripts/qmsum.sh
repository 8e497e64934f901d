#!/usr/bin/env bash
# QMSum, questions on meetings: layers over the turns of a meeting on a frozen MiniLM, on a CPU.
# Flags: configs/qmsum.yaml; the whole command: DRY_RUN=1 generate_scripts/qmsum.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict qmsum "$@"
