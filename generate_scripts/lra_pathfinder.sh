#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve? 32 x 32 pixels, the hard part. Long Range Arena.
# It needs the data and the checkpoint of train_scripts/lra_pathfinder.sh.
# Another split or model: hat recipe predict lra_pathfinder [FLAGS].
set -euo pipefail
hat predict checkpoints/lra_pathfinder/checkpoint_best.pt data-bin/lra_pathfinder \
    --split test \
    --out results/lra_pathfinder/test.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/lra_pathfinder/test.jsonl \
    --references data-bin/lra_pathfinder/text/test.jsonl \
    --out results/lra_pathfinder/test.score.json
