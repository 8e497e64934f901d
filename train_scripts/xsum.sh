#!/usr/bin/env bash
# XSum from BART-large: 64 documents of at most 1024 tokens an update, 20,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train xsum "$@"
