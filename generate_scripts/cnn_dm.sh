#!/usr/bin/env bash
# Summaries of the 11,490 CNN/DailyMail test articles and their ROUGE: results/cnn_dm/test.jsonl.
exec "$(dirname "$0")/../scripts/hat" recipe generate cnn_dm "$@"
