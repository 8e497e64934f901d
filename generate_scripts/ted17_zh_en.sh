#!/usr/bin/env bash
# TED17 Chinese-English, whole talks (Rohde et al. 2021, section 4.2, Table 7): 8,192 tokens x 2 on one V100 an update.
# It needs the data and the checkpoint of train_scripts/ted17_zh_en.sh.
# Another split or model: hat recipe generate ted17_zh_en [FLAGS].
set -euo pipefail
hat generate checkpoints/ted17_zh_en/checkpoint_best.pt data-bin/ted17_zh_en \
    --split test \
    --out results/ted17_zh_en/test.jsonl \
    --overwrite \
    --max-tokens 8192 \
    --beam 4 \
    --max-len-b 1023
hat score bleu results/ted17_zh_en/test.jsonl \
    --references data-bin/ted17_zh_en/text/test.jsonl \
    --out results/ted17_zh_en/test.score.json
