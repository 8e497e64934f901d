#!/usr/bin/env bash
# Retrieval of Long Range Arena: 32 pairs of papers an update, 5,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_retrieval "$@"
