#!/usr/bin/env bash
# TyDi QA's primary tasks as Poolingformer does them (Zhang et al. 2021, Table 3).
# Flags: configs/tydi_qa.yaml; the whole command: DRY_RUN=1 train_scripts/tydi_qa.sh
exec "$(dirname "$0")/../scripts/hat" recipe train tydi_qa "$@"
