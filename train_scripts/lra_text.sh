#!/usr/bin/env bash
# Text of Long Range Arena: 32 reviews an update, 20,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_text "$@"
