#!/usr/bin/env bash
# SAMSum from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 5).
# It needs the data and the checkpoint of train_scripts/samsum.sh.
# Another split or model: hat recipe generate samsum [FLAGS].
set -euo pipefail
hat generate checkpoints/samsum/checkpoint_best.pt data-bin/samsum \
    --split test \
    --out results/samsum/test.jsonl \
    --overwrite \
    --lenpen 1 \
    --no-repeat-ngram-size 3 \
    --batch-size 32 \
    --beam 6 \
    --min-len 10 \
    --max-len-b 100
hat score rouge \
    --like files2rouge results/samsum/test.jsonl \
    --references data-bin/samsum/text/test.jsonl \
    --out results/samsum/test.score.json
