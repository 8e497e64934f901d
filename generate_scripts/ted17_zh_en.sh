#!/usr/bin/env bash
# Translations of the test documents, chunks joined, and their BLEU: results/ted17_zh_en/test.jsonl.
# Paper (Table 7, sacrebleu): HAT 24.0 (TED17) and 22.9 (TED16), plain 23.2 and 23.1;
# hardware and time of translating are not stated. Ours: not run yet.
# First:      train_scripts/ted17_zh_en.sh
# TED16:      --gen-subset test1
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/ted17_zh_en.sh --path checkpoints/ted17_zh_en-plain/checkpoint_best.pt \
#               --results-path results/ted17_zh_en-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate ted17_zh_en "$@"
