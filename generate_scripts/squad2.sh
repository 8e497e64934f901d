#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on SQuAD.
# It needs the data and the checkpoint of train_scripts/squad2.sh.
# Another split or model: hat recipe predict squad2 [FLAGS].
set -euo pipefail
hat predict checkpoints/squad2/checkpoint_best.pt data-bin/squad2 \
    --split valid \
    --out results/squad2/valid.jsonl \
    --overwrite \
    --batch-size 32
hat score squad results/squad2/valid.jsonl \
    --references data-bin/squad2/text/valid.jsonl \
    --out results/squad2/valid.score.json
