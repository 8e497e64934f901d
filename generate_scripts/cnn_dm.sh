#!/usr/bin/env bash
# CNN/DailyMail from BART-large (Rohde et al. 2021, Table 4). SAMSum, AMI and ICSI start from its result.
# It needs the data and the checkpoint of train_scripts/cnn_dm.sh.
# Another split or model: hat recipe generate cnn_dm [FLAGS].
set -euo pipefail
hat generate checkpoints/cnn_dm/checkpoint_best.pt data-bin/cnn_dm \
    --split test \
    --out results/cnn_dm/test.jsonl \
    --overwrite \
    --batch-size 32 \
    --beam 1 \
    --lenpen 0 \
    --min-len 40 \
    --max-len-b 120
hat score rouge \
    --like files2rouge results/cnn_dm/test.jsonl \
    --references data-bin/cnn_dm/text/test.jsonl \
    --out results/cnn_dm/test.score.json
