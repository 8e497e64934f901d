#!/usr/bin/env bash
# Image of Long Range Arena: 256 pictures an update, 35,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_image "$@"
