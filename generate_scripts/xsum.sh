#!/usr/bin/env bash
# XSum: news in one sentence.
# paper: Rohde et al. 2021, Table 4, row HAT-BART
# needs: --root DIR, bart.large, 1 GPU
#
# Section 4.1, "News datasets": HAT from BART-large. The baseline, row Transformer-BART: --no-hierarchy. Its numbers
# of steps and of documents an update are those of CNN/DailyMail; the paper states none of its own.
#
# ROOT=DIR bash generate_scripts/xsum.sh
# Written from configs/xsum.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/xsum
    --bpe gpt2  # section 4.1, on the long documents, also for news
    --max-source-tokens 1024  # section 4.1
    --max-target-tokens 256  # section 4.1
    --long-source truncate  # section 4.1
    --long-target truncate  # section 4.1
)
[ -d data-bin/xsum ] ||
    hat preprocess xsum --root "${ROOT:?the folder of the release, see preprocess/xsum.py}" "${preprocess[@]}"

generate=(
    --split test
    --out results/xsum/test.jsonl
    --overwrite
    --beam 1  # section 4.1
    --lenpen 0  # section 4.1: "no length penalty"
    --min-len 40  # section 4.1
    --max-len-b 120  # section 4.1
    --batch-size 32
)
hat generate checkpoints/xsum/checkpoint_best.pt \
    data-bin/xsum "${generate[@]}"
# section 5: "File2rouge was used"
hat score rouge \
    --like files2rouge results/xsum/test.jsonl \
    --references data-bin/xsum/text/test.jsonl \
    --out results/xsum/test.score.json
