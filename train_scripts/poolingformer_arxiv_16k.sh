#!/usr/bin/env bash
# arXiv with Poolingformer, from BART-large: 128 documents of at most 16384 tokens an update, 15,862 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train poolingformer_arxiv_16k "$@"
