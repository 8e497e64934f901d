#!/usr/bin/env bash
# arXiv: abstracts of papers.
# paper: Rohde et al. 2021, Table 3, row HAT-BART
# needs: --root DIR, bart.large, 2 GPUs; the paper: 115 hours on 2 A100, 100 without hierarchy
#
# Section 4.1, "Long sequence datasets": HAT from BART-large. The baseline, row Transformer-BART: --no-hierarchy. The
# hours are without validation and without the time to save models.
#
# ROOT=DIR bash generate_scripts/arxiv.sh
# Written from configs/arxiv.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/arxiv
    --bpe gpt2  # section 4.1
    --max-source-tokens 3072  # section 4.1
    --max-target-tokens 512  # section 4.1
    --long-source truncate  # section 4.1
    --long-target truncate  # section 4.1
)
[ -d data-bin/arxiv ] ||
    hat preprocess arxiv --root "${ROOT:?the folder of the release, see preprocess/arxiv.py}" "${preprocess[@]}"

generate=(
    --split test
    --out results/arxiv/test.jsonl
    --overwrite
    --beam 2  # section 4.1
    --lenpen 1  # section 4.1
    --min-len 72  # section 4.1
    --max-len-b 966  # section 4.1
    --batch-size 16
)
hat generate checkpoints/arxiv/checkpoint_best.pt \
    data-bin/arxiv "${generate[@]}"
# section 5: "File2rouge was used"
hat score rouge \
    --like files2rouge results/arxiv/test.jsonl \
    --references data-bin/arxiv/text/test.jsonl \
    --out results/arxiv/test.score.json
