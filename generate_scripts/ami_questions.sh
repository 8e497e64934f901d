#!/usr/bin/env bash
# Questions on AMI meetings: layers over the turns of a meeting on a frozen MiniLM, in minutes on a CPU.
# Flags: configs/ami_questions.yaml; the whole command: DRY_RUN=1 generate_scripts/ami_questions.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict ami_questions "$@"
