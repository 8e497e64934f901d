#!/usr/bin/env bash
# Retrieval: does one paper cite the other?
# paper: Liu et al. 2022, Tables 6 and 10, column Retrieval
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_retrieval, --arch bigbird_lra_retrieval. The learning rate after t updates with the warm-up w is
# 0.05 min(1, t / w) / sqrt(max(t, w)); fairseq's --lr is its highest value, 0.05 / sqrt(w).
#
# ROOT=DIR bash generate_scripts/lra_retrieval.sh
# Written from configs/lra_retrieval.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_retrieval
    --max-source-tokens 4002  # <s>, 4,000 bytes, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_retrieval ] ||
    hat preprocess lra_retrieval --root "${ROOT:?the folder of the release, see preprocess/lra_retrieval.py}" "${preprocess[@]}"

predict=(
    --split test
    --out results/lra_retrieval/test.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/lra_retrieval/checkpoint_best.pt \
    data-bin/lra_retrieval "${predict[@]}"
hat score classification results/lra_retrieval/test.jsonl \
    --references data-bin/lra_retrieval/text/test.jsonl \
    --out results/lra_retrieval/test.score.json
