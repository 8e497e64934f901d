#!/usr/bin/env bash
# Summaries of the 6,440 arXiv test articles and their ROUGE: results/poolingformer_arxiv_16k/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate poolingformer_arxiv_16k "$@"
