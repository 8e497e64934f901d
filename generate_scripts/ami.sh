#!/usr/bin/env bash
# Summaries of the 20 AMI test meetings and their ROUGE: results/ami/test.jsonl.
# Paper (Table 6, scored with files2rouge): HAT 52.27 / 20.15 / 50.57, plain 52.06 / 19.27 / 50.02;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/ami.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/ami.sh --path checkpoints/ami-plain/checkpoint_best.pt \
#               --results-path results/ami-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate ami "$@"
