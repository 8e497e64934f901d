#!/usr/bin/env bash
# Summaries of the 6,658 PubMed test articles and their ROUGE: results/pubmed/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate pubmed "$@"
