#!/usr/bin/env bash
# Translations of the test documents, chunks joined, and their BLEU: results/wmt20_en_de/test.jsonl.
# Paper (Table 7, sacrebleu): HAT 27.4 (WMT20) and 34.5 (WMT19), plain 27.1 and 32.5;
# hardware and time of translating are not stated. Ours: not run yet.
# First:      train_scripts/wmt20_en_de.sh
# WMT19:      --gen-subset test1
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/wmt20_en_de.sh --path checkpoints/wmt20_en_de-plain/checkpoint_best.pt \
#               --results-path results/wmt20_en_de-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate wmt20_en_de "$@"
