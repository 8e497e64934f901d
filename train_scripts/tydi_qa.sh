#!/usr/bin/env bash
# TyDi QA from RoBERTa-large: 64 windows of 4,096 tokens an update, about 2 epochs.
exec "$(dirname "$0")/../scripts/hat" recipe train tydi_qa "$@"
