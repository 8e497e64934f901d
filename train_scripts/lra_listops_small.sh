#!/usr/bin/env bash
# ListOps with short expressions and a small model: 32 expressions an update, 1,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_listops_small "$@"
