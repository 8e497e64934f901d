#!/usr/bin/env bash
# Labels of the sentences of your own documents, in minutes on a CPU: `hat recipe run sentence_labels --root DIR`.
# Flags: configs/sentence_labels.yaml; the whole command: DRY_RUN=1 generate_scripts/sentence_labels.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict sentence_labels "$@"
