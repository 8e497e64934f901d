#!/usr/bin/env bash
# MultiNLI with HAT's encoder from RoBERTa-base: 32 pairs an update, 123,873 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train mnli "$@"
