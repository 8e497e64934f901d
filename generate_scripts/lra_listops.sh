#!/usr/bin/env bash
# ListOps: the value of a nested expression.
# paper: Liu et al. 2022, Tables 6 and 10, column ListOps
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_listops, --arch bigbird_lra_listops. The learning rate after t updates with the warm-up w is 0.05
# min(1, t / w) / sqrt(max(t, w)); fairseq's --lr is its highest value, 0.05 / sqrt(w).
#
# ROOT=DIR bash generate_scripts/lra_listops.sh
# Written from configs/lra_listops.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_listops
    --max-source-tokens 2002  # <s>, 2,000 symbols, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_listops ] ||
    hat preprocess lra_listops --root "${ROOT:?the folder of the release, see preprocess/lra_listops.py}" "${preprocess[@]}"

predict=(
    --split test
    --out results/lra_listops/test.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/lra_listops/checkpoint_best.pt \
    data-bin/lra_listops "${predict[@]}"
hat score classification results/lra_listops/test.jsonl \
    --references data-bin/lra_listops/text/test.jsonl \
    --out results/lra_listops/test.score.json
