#!/usr/bin/env bash
# Summaries of the 6,440 arXiv test articles and their ROUGE: results/arxiv/test.jsonl.
# The paper's beam 2, lenpen 1, 72 to 966 tokens.
# Paper (Table 3, scored with files2rouge): HAT 46.68 / 19.07 / 42.17, plain 46.54 / 18.82 / 42.00;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/arxiv.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/arxiv.sh --path checkpoints/arxiv-plain/checkpoint_best.pt \
#               --results-path results/arxiv-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate arxiv "$@"
