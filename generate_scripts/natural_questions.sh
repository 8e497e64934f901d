#!/usr/bin/env bash
# Natural Questions as Poolingformer answers them (Zhang et al. 2021, Table 2).
# Flags: configs/natural_questions.yaml; the whole command: DRY_RUN=1 generate_scripts/natural_questions.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict natural_questions "$@"
