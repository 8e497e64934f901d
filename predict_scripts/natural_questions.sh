#!/usr/bin/env bash
# Answers to the 7,830 development questions of Natural Questions and their F1: results/natural_questions/natural_questions.json.
exec "$(dirname "$0")/../scripts/hat" recipe predict natural_questions "$@"
