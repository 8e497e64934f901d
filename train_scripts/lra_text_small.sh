#!/usr/bin/env bash
# Text, bytes of reviews truncated to 1,000, with a small model, on a CPU.
# Flags: configs/lra_text_small.yaml; the whole command: DRY_RUN=1 train_scripts/lra_text_small.sh
exec "$(dirname "$0")/../scripts/hat" recipe train lra_text_small "$@"
