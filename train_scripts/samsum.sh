#!/usr/bin/env bash
# SAMSum from the HAT of CNN/DailyMail: 32 conversations an update, 3,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train samsum "$@"
