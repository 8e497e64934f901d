#!/usr/bin/env bash
# ListOps: the value of a nested expression, of 500 to 2,000 symbols. Long Range Arena.
# It needs the data and the checkpoint of train_scripts/lra_listops.sh.
# Another split or model: hat recipe predict lra_listops [FLAGS].
set -euo pipefail
hat predict checkpoints/lra_listops/checkpoint_best.pt data-bin/lra_listops \
    --split test \
    --out results/lra_listops/test.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/lra_listops/test.jsonl \
    --references data-bin/lra_listops/text/test.jsonl \
    --out results/lra_listops/test.score.json
