#!/usr/bin/env bash
# MultiNLI: does one sentence follow from another?
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash generate_scripts/mnli.sh
# Written from configs/mnli.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/mnli
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source truncate
)
[ -d data-bin/mnli ] ||
    hat preprocess mnli --root "${ROOT:?the folder of the release, see preprocess/mnli.py}" "${preprocess[@]}"

predict=(
    --split valid  # MNLI-m is dev_matched
    --out results/mnli/valid.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/mnli/checkpoint_best.pt \
    data-bin/mnli "${predict[@]}"
hat score classification results/mnli/valid.jsonl \
    --references data-bin/mnli/text/valid.jsonl \
    --out results/mnli/valid.score.json
