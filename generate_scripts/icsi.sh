#!/usr/bin/env bash
# Summaries of the 6 ICSI test meetings and their ROUGE: results/icsi/test.jsonl.
# Paper (Table 6, scored with files2rouge): HAT 43.98 / 10.83 / 41.36, plain 43.77 / 11.65 / 41.64;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/icsi.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/icsi.sh --path checkpoints/icsi-plain/checkpoint_best.pt \
#               --results-path results/icsi-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate icsi "$@"
