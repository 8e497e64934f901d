#!/usr/bin/env bash
# Natural Questions with Poolingformer's base size, for the ablations of Zhang et al. 2021, Tables 5 to 7.
# Flags: configs/natural_questions_base.yaml; the whole command: DRY_RUN=1 generate_scripts/natural_questions_base.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict natural_questions_base "$@"
