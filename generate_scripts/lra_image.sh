#!/usr/bin/env bash
# Image: the class of a grey picture of CIFAR-10, pixel by pixel. Long Range Arena.
# It needs the data and the checkpoint of train_scripts/lra_image.sh.
# Another split or model: hat recipe predict lra_image [FLAGS].
set -euo pipefail
hat predict checkpoints/lra_image/checkpoint_best.pt data-bin/lra_image \
    --split test \
    --out results/lra_image/test.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/lra_image/test.jsonl \
    --references data-bin/lra_image/text/test.jsonl \
    --out results/lra_image/test.score.json
