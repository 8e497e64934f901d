#!/usr/bin/env bash
# ListOps of Long Range Arena: 32 expressions an update, 5,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_listops "$@"
