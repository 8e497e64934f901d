#!/usr/bin/env bash
# Text of Long Range Arena with a small model: 32 reviews an update, 500 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_text_small "$@"
