#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve?
# paper: Liu et al. 2022, Tables 6 and 10, column Pathfinder
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_pathfinder, --arch bigbird_lra_pathfinder. 200 epochs, of which one is the warm-up; the learning
# rate falls to 0 by a cosine.
#
# ROOT=DIR bash generate_scripts/lra_pathfinder.sh
# Written from configs/lra_pathfinder.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_pathfinder
    --max-source-tokens 1026  # <s>, 1,024 pixels, </s>
)
[ -d data-bin/lra_pathfinder ] ||
    hat preprocess lra_pathfinder --root "${ROOT:?the folder of the release, see preprocess/lra_pathfinder.py}" "${preprocess[@]}"

predict=(
    --split test
    --out results/lra_pathfinder/test.jsonl
    --overwrite
    --batch-size 32
)
hat predict checkpoints/lra_pathfinder/checkpoint_best.pt \
    data-bin/lra_pathfinder "${predict[@]}"
hat score classification results/lra_pathfinder/test.jsonl \
    --references data-bin/lra_pathfinder/text/test.jsonl \
    --out results/lra_pathfinder/test.score.json
