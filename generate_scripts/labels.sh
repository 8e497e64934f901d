#!/usr/bin/env bash
# Labels of your own documents, in minutes on a CPU: `hat recipe run labels --root DIR`.
# Flags: configs/labels.yaml; the whole command: DRY_RUN=1 generate_scripts/labels.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict labels "$@"
