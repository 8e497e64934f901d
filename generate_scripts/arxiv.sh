#!/usr/bin/env bash
# arXiv from BART-large (Rohde et al. 2021, Table 3).
# It needs the data and the checkpoint of train_scripts/arxiv.sh.
# Another split or model: hat recipe generate arxiv [FLAGS].
set -euo pipefail
hat generate checkpoints/arxiv/checkpoint_best.pt data-bin/arxiv \
    --split test \
    --out results/arxiv/test.jsonl \
    --overwrite \
    --batch-size 16 \
    --beam 2 \
    --lenpen 1 \
    --min-len 72 \
    --max-len-b 966
hat score rouge \
    --like files2rouge results/arxiv/test.jsonl \
    --references data-bin/arxiv/text/test.jsonl \
    --out results/arxiv/test.score.json
