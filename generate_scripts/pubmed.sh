#!/usr/bin/env bash
# Summaries of the 6,658 PubMed test articles and their ROUGE: results/pubmed/test.jsonl.
# The paper's beam 2, lenpen 1, 72 to 966 tokens.
# Paper (Table 3, scored with files2rouge): HAT 48.36 / 21.43 / 37.00, plain 48.35 / 21.43 / 36.90;
# its hardware and time are not stated. Ours: not run yet.
# First:      train_scripts/pubmed.sh
# Perl ROUGE: --score 'rouge --like files2rouge --backend perl', as files2rouge itself
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/pubmed.sh --path checkpoints/pubmed-plain/checkpoint_best.pt \
#               --results-path results/pubmed-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate pubmed "$@"
