#!/usr/bin/env bash
# WMT20 English-Czech, whole documents, from scratch: 131,072 tokens an update, 15,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train wmt20_en_cs "$@"
