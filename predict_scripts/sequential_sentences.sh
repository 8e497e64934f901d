#!/usr/bin/env bash
# A label for each sentence of the test documents, and scores: results/sequential_sentences/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict sequential_sentences "$@"
