#!/usr/bin/env bash
# Summaries of the 11,334 XSum test articles and their ROUGE: results/xsum/test.jsonl.
# The paper's beam 1, 40 to 120 tokens.
# Paper (Table 4, scored with files2rouge): HAT 45.92 / 22.79 / 37.84, plain 45.26 / 22.19 / 37.04;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/xsum.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/xsum.sh --path checkpoints/xsum-plain/checkpoint_best.pt \
#               --results-path results/xsum-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate xsum "$@"
