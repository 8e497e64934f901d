#!/usr/bin/env bash
# ICSI meetings from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 6).
# It needs the data and the checkpoint of train_scripts/icsi.sh.
# Another split or model: hat recipe generate icsi [FLAGS].
set -euo pipefail
hat generate checkpoints/icsi/checkpoint_best.pt data-bin/icsi \
    --split test \
    --out results/icsi/test.jsonl \
    --overwrite \
    --lenpen 1 \
    --no-repeat-ngram-size 3 \
    --batch-size 10 \
    --beam 2 \
    --min-len 72 \
    --max-len-b 966
hat score rouge \
    --like files2rouge results/icsi/test.jsonl \
    --references data-bin/icsi/text/test.jsonl \
    --out results/icsi/test.score.json
