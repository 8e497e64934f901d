#!/usr/bin/env bash
# WMT20 English-Czech, whole documents (Rohde et al. 2021, section 4.2, Table 7).
# It needs the data and the checkpoint of train_scripts/wmt20_en_cs.sh.
# Another split or model: hat recipe generate wmt20_en_cs [FLAGS].
set -euo pipefail
hat generate checkpoints/wmt20_en_cs/checkpoint_best.pt data-bin/wmt20_en_cs \
    --split test \
    --out results/wmt20_en_cs/test.jsonl \
    --overwrite \
    --max-tokens 8192 \
    --beam 4 \
    --max-len-b 1023
hat score bleu results/wmt20_en_cs/test.jsonl \
    --references data-bin/wmt20_en_cs/text/test.jsonl \
    --out results/wmt20_en_cs/test.score.json
