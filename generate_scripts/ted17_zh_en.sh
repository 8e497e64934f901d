#!/usr/bin/env bash
# Translations of the test documents, chunks joined, and their BLEU: results/ted17_zh_en/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate ted17_zh_en "$@"
