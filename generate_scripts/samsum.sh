#!/usr/bin/env bash
# Summaries of the 819 SAMSum test conversations and their ROUGE: results/samsum/test.jsonl.
# Paper (Table 5, scored with files2rouge): HAT 53.01 / 28.27 / 48.84, plain 53.00 / 28.03 / 48.59;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/samsum.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/samsum.sh --path checkpoints/samsum-plain/checkpoint_best.pt \
#               --results-path results/samsum-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate samsum "$@"
