#!/usr/bin/env bash
# SQuAD 2.0: the answer in a paragraph, or none.
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash generate_scripts/squad2.sh
# Written from configs/squad2.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/squad2
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source chunk
)
[ -d data-bin/squad2 ] ||
    hat preprocess squad2 --root "${ROOT:?the folder of the release, see preprocess/squad2.py}" "${preprocess[@]}"

predict=(
    --split valid  # the test part is hidden
    --out results/squad2/valid.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/squad2/checkpoint_best.pt \
    data-bin/squad2 "${predict[@]}"
hat score squad results/squad2/valid.jsonl \
    --references data-bin/squad2/text/valid.jsonl \
    --out results/squad2/valid.score.json
