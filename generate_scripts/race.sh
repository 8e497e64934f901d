#!/usr/bin/env bash
# RACE with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on RACE.
# It needs the data and the checkpoint of train_scripts/race.sh.
# Another split or model: hat recipe predict race [FLAGS].
set -euo pipefail
hat predict checkpoints/race/checkpoint_best.pt data-bin/race \
    --split test \
    --out results/race/test.jsonl \
    --overwrite \
    --batch-size 8
hat score classification results/race/test.jsonl \
    --references data-bin/race/text/test.jsonl \
    --out results/race/test.score.json
