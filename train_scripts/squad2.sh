#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder from RoBERTa-base: 48 questions an update, 5,430 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train squad2 "$@"
