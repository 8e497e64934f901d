#!/usr/bin/env bash
# WMT20 English-German, whole documents, from scratch: 131,072 tokens an update, 50,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train wmt20_en_de "$@"
