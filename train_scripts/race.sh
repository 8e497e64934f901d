#!/usr/bin/env bash
# RACE with HAT's encoder from RoBERTa-base: 16 questions an update, 21,968 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train race "$@"
