#!/usr/bin/env bash
# A label for each sentence of documents of your own: 32 documents an update, 2,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train sequential_sentences "$@"
