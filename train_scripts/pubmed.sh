#!/usr/bin/env bash
# PubMed from BART-large: 128 documents of at most 3072 tokens an update, 30,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train pubmed "$@"
