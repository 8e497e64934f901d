#!/usr/bin/env bash
# TyDi QA: answers in pages, in eleven languages.
# paper: Zhang et al. 2021, Table 3, row Poolingformer
# needs: --root DIR, xlmr.large, 8 GPUs
#
# Section 3.2: Poolingformer. The paper does not print weight decay, dropout and Adam's betas; ours are RoBERTa's (Liu
# et al. 2019, Table 10).
#
# ROOT=DIR bash generate_scripts/tydi_qa.sh
# Written from configs/tydi_qa.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/tydi_qa
    --bpe sentencepiece  # that of the weights
    --bpe-dir xlmr.large  # where sentencepiece.bpe.model is
    --max-source-tokens 4096  # section 3.2: windows of 4,096 tokens
    --long-source chunk
    --window-overlap 2528  # section 3.2: a window begins 1,568 tokens after the one before
    --negative-windows 0.5  # section 3.2
)
[ -d data-bin/tydi_qa ] ||
    hat preprocess tydi_qa --root "${ROOT:?the folder of the release, see preprocess/tydi_qa.py}" "${preprocess[@]}"

predict=(
    --split valid  # the test parts are hidden
    --out results/tydi_qa/valid.jsonl
    --overwrite
    --batch-size 4
)
hat predict checkpoints/tydi_qa/checkpoint_best.pt \
    data-bin/tydi_qa "${predict[@]}"
# by the authors' script, on the file beside the predictions
