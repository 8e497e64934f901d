#!/usr/bin/env bash
# ICSI meetings from the HAT of CNN/DailyMail: 8 meetings an update, 400 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train icsi "$@"
