#!/usr/bin/env bash
# Translations of the test documents, chunks joined, and their BLEU: results/wmt20_en_de/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate wmt20_en_de "$@"
