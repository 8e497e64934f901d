#!/usr/bin/env bash
# PubMed from BART-large (Rohde et al. 2021, Table 3).
# It needs the data and the checkpoint of train_scripts/pubmed.sh.
# Another split or model: hat recipe generate pubmed [FLAGS].
set -euo pipefail
hat generate checkpoints/pubmed/checkpoint_best.pt data-bin/pubmed \
    --split test \
    --out results/pubmed/test.jsonl \
    --overwrite \
    --batch-size 16 \
    --beam 2 \
    --lenpen 1 \
    --min-len 72 \
    --max-len-b 966
hat score rouge \
    --like files2rouge results/pubmed/test.jsonl \
    --references data-bin/pubmed/text/test.jsonl \
    --out results/pubmed/test.score.json
