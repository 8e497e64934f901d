#!/usr/bin/env bash
# Answers to the 18,670 development questions of TyDi QA and their F1: results/tydi_qa/tydi_qa.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe predict tydi_qa "$@"
