#!/usr/bin/env bash
# A label for each sentence of a document, with a Hierarchical Attention Transformer.
# Flags: configs/sequential_sentences.yaml; the whole command: DRY_RUN=1 generate_scripts/sequential_sentences.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict sequential_sentences "$@"
