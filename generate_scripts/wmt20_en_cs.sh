#!/usr/bin/env bash
# Translations of the test documents, chunks joined, and their BLEU: results/wmt20_en_cs/test.jsonl.
# Paper (Table 7, sacrebleu): HAT 24.2 (WMT20) and 19.2 (WMT19), plain 25.0 and 18.6;
# hardware and time of translating are not stated. Ours: not run yet.
# First:      train_scripts/wmt20_en_cs.sh
# WMT19:      --gen-subset test1
# Several GPUs share the work; stopped, the same command goes on.
# Plain twin: generate_scripts/wmt20_en_cs.sh --path checkpoints/wmt20_en_cs-plain/checkpoint_best.pt \
#               --results-path results/wmt20_en_cs-plain
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate wmt20_en_cs "$@"
