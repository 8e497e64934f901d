#!/usr/bin/env bash
# PubMed with HAT on Poolingformer's encoder, from BART-large: 128 documents of at most 16384 tokens an update, 30,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train hat_pooling_pubmed_16k "$@"
