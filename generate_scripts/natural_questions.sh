#!/usr/bin/env bash
# Natural Questions: answers in pages of Wikipedia.
# paper: Zhang et al. 2021, Table 2, row Poolingformer
# needs: --root DIR, roberta.large, 8 GPUs
#
# Section 3.2: Poolingformer. The paper does not print weight decay, dropout and Adam's betas; ours are RoBERTa's (Liu
# et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/natural_questions.sh
# Written from configs/natural_questions.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/natural_questions
    --bpe gpt2  # that of the weights
    --max-source-tokens 4096  # section 3.2: windows of 4,096 tokens
    --long-source chunk
    --window-overlap 2528  # section 3.2: a window begins 1,568 tokens after the one before
    --negative-windows 0.5  # section 3.2
)
[ -d data-bin/natural_questions ] ||
    hat preprocess natural_questions --root "${ROOT:?the folder of the release, see preprocess/natural_questions.py}" "${preprocess[@]}"

predict=(
    --split valid  # the test parts are hidden
    --out results/natural_questions/valid.jsonl
    --overwrite
    --batch-size 4
)
hat predict checkpoints/natural_questions/checkpoint_best.pt \
    data-bin/natural_questions "${predict[@]}"
# by the authors' script, on the file beside the predictions
