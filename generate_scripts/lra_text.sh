#!/usr/bin/env bash
# Text: reviews of films as bytes.
# paper: Liu et al. 2022, Tables 6 and 10, column Text
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_text, --arch bigbird_lra_text. The learning rate after t updates with the warm-up w is 0.05 min(1, t
# / w) / sqrt(max(t, w)); fairseq's --lr is its highest value, 0.05 / sqrt(w).
#
# ROOT=DIR bash generate_scripts/lra_text.sh
# Written from configs/lra_text.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_text
    --max-source-tokens 1002  # <s>, 1,000 bytes, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_text ] ||
    hat preprocess lra_text --root "${ROOT:?the folder of the release, see preprocess/lra_text.py}" "${preprocess[@]}"

predict=(
    --split test  # on which the authors validate, too
    --out results/lra_text/test.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/lra_text/checkpoint_best.pt \
    data-bin/lra_text "${predict[@]}"
hat score classification results/lra_text/test.jsonl \
    --references data-bin/lra_text/text/test.jsonl \
    --out results/lra_text/test.score.json
