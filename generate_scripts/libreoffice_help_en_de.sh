#!/usr/bin/env bash
# Translations of the test pages, chunks joined, and their BLEU: results/libreoffice_help_en_de/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate libreoffice_help_en_de "$@"
