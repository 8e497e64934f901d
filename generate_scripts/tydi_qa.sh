#!/usr/bin/env bash
# TyDi QA's primary tasks as Poolingformer does them (Zhang et al. 2021, Table 3).
# It needs the data and the checkpoint of train_scripts/tydi_qa.sh.
# Another split or model: hat recipe predict tydi_qa [FLAGS].
set -euo pipefail
hat predict checkpoints/tydi_qa/checkpoint_best.pt data-bin/tydi_qa \
    --split valid \
    --out results/tydi_qa/valid.jsonl \
    --overwrite \
    --batch-size 4
