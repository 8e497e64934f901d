#!/usr/bin/env bash
# Text: reviews of films as bytes, truncated to 1,000. Long Range Arena.
# It needs the data and the checkpoint of train_scripts/lra_text.sh.
# Another split or model: hat recipe predict lra_text [FLAGS].
set -euo pipefail
hat predict checkpoints/lra_text/checkpoint_best.pt data-bin/lra_text \
    --split test \
    --out results/lra_text/test.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/lra_text/test.jsonl \
    --references data-bin/lra_text/text/test.jsonl \
    --out results/lra_text/test.score.json
