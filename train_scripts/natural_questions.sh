#!/usr/bin/env bash
# Natural Questions from RoBERTa-large: 64 windows of 4,096 tokens an update, about 2 epochs.
exec "$(dirname "$0")/../scripts/hat" recipe train natural_questions "$@"
