#!/usr/bin/env bash
# RACE: the right answer of four on a text.
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash generate_scripts/race.sh
# Written from configs/race.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/race
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source truncate
)
[ -d data-bin/race ] ||
    hat preprocess race --root "${ROOT:?the folder of the release, see preprocess/race.py}" "${preprocess[@]}"

predict=(
    --split test
    --out results/race/test.jsonl
    --overwrite
    --batch-size 8
)
hat predict checkpoints/race/checkpoint_best.pt \
    data-bin/race "${predict[@]}"
hat score classification results/race/test.jsonl \
    --references data-bin/race/text/test.jsonl \
    --out results/race/test.score.json
