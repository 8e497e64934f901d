#!/usr/bin/env bash
# The right choice after a long text of your own: 32 questions an update, 2,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train multiple_choice "$@"
