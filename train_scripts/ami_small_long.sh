#!/usr/bin/env bash
# AMI meetings: a small HAT from scratch on a CPU.
exec "$(dirname "$0")/../scripts/hat" recipe train ami_small_long "$@"
