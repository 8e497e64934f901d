#!/usr/bin/env bash
# Summaries of the 6,658 PubMed test articles and their ROUGE: results/hat_pooling_pubmed_16k/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate hat_pooling_pubmed_16k "$@"
