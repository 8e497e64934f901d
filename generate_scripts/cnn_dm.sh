#!/usr/bin/env bash
# CNN/DailyMail: highlights of news.
# paper: Rohde et al. 2021, Table 4, row HAT-BART
# needs: --root DIR, bart.large, 1 GPU
#
# Section 4.1, "News datasets": HAT from BART-large. The baseline, row Transformer-BART: --no-hierarchy. Recipes
# samsum, ami and icsi start from its result.
#
# ROOT=DIR bash generate_scripts/cnn_dm.sh
# Written from configs/cnn_dm.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/cnn_dm
    --bpe gpt2  # section 4.1, on the long documents, also for news
    --max-source-tokens 1024  # section 4.1
    --max-target-tokens 256  # section 4.1
    --long-source truncate  # section 4.1
    --long-target truncate  # section 4.1
)
[ -d data-bin/cnn_dm ] ||
    hat preprocess cnn_dm --root "${ROOT:?the folder of the release, see preprocess/cnn_dm.py}" "${preprocess[@]}"

generate=(
    --split test
    --out results/cnn_dm/test.jsonl
    --overwrite
    --beam 1  # section 4.1
    --lenpen 0  # section 4.1: "no length penalty"
    --min-len 40  # section 4.1
    --max-len-b 120  # section 4.1
    --batch-size 32
)
hat generate checkpoints/cnn_dm/checkpoint_best.pt \
    data-bin/cnn_dm "${generate[@]}"
# section 5: "File2rouge was used"
hat score rouge \
    --like files2rouge results/cnn_dm/test.jsonl \
    --references data-bin/cnn_dm/text/test.jsonl \
    --out results/cnn_dm/test.score.json
