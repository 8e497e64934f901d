#!/usr/bin/env bash
# Summaries of the 11,490 CNN/DailyMail test articles and their ROUGE: results/cnn_dm/test.jsonl.
# The paper's beam 1, 40 to 120 tokens.
# Paper (Table 4, scored with files2rouge): HAT 44.48 / 21.31 / 41.52, plain 44.45 / 21.27 / 41.51;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/cnn_dm.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/cnn_dm.sh --path checkpoints/cnn_dm-plain/checkpoint_best.pt \
#               --results-path results/cnn_dm-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate cnn_dm "$@"
