#!/usr/bin/env bash
# TED17 Chinese-English, whole documents, from scratch: 16,384 tokens an update, 8,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train ted17_zh_en "$@"
