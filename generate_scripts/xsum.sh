#!/usr/bin/env bash
# XSum from BART-large (Rohde et al. 2021, Table 4).
# It needs the data and the checkpoint of train_scripts/xsum.sh.
# Another split or model: hat recipe generate xsum [FLAGS].
set -euo pipefail
hat generate checkpoints/xsum/checkpoint_best.pt data-bin/xsum \
    --split test \
    --out results/xsum/test.jsonl \
    --overwrite \
    --batch-size 32 \
    --beam 1 \
    --lenpen 0 \
    --min-len 40 \
    --max-len-b 120
hat score rouge \
    --like files2rouge results/xsum/test.jsonl \
    --references data-bin/xsum/text/test.jsonl \
    --out results/xsum/test.score.json
