#!/usr/bin/env bash
# AMI meetings from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 6).
# It needs the data and the checkpoint of train_scripts/ami.sh.
# Another split or model: hat recipe generate ami [FLAGS].
set -euo pipefail
hat generate checkpoints/ami/checkpoint_best.pt data-bin/ami \
    --split test \
    --out results/ami/test.jsonl \
    --overwrite \
    --lenpen 1 \
    --no-repeat-ngram-size 3 \
    --batch-size 10 \
    --beam 2 \
    --min-len 72 \
    --max-len-b 966
hat score rouge \
    --like files2rouge results/ami/test.jsonl \
    --references data-bin/ami/text/test.jsonl \
    --out results/ami/test.score.json
