#!/usr/bin/env bash
# Retrieval: does one paper cite the other? Two texts as bytes, each truncated to 4,000. Long Range Arena.
# It needs the data and the checkpoint of train_scripts/lra_retrieval.sh.
# Another split or model: hat recipe predict lra_retrieval [FLAGS].
set -euo pipefail
hat predict checkpoints/lra_retrieval/checkpoint_best.pt data-bin/lra_retrieval \
    --split test \
    --out results/lra_retrieval/test.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/lra_retrieval/test.jsonl \
    --references data-bin/lra_retrieval/text/test.jsonl \
    --out results/lra_retrieval/test.score.json
