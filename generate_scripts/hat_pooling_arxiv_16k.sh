#!/usr/bin/env bash
# Summaries of the 6,440 arXiv test articles and their ROUGE: results/hat_pooling_arxiv_16k/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate hat_pooling_arxiv_16k "$@"
