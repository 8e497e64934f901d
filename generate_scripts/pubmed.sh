#!/usr/bin/env bash
# PubMed: abstracts of medical papers.
# paper: Rohde et al. 2021, Table 3, row HAT-BART
# needs: --root DIR, bart.large, 2 GPUs
#
# Section 4.1, "Long sequence datasets": HAT from BART-large. The baseline, row Transformer-BART: --no-hierarchy.
#
# ROOT=DIR bash generate_scripts/pubmed.sh
# Written from configs/pubmed.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/pubmed
    --bpe gpt2  # section 4.1
    --max-source-tokens 3072  # section 4.1
    --max-target-tokens 512  # section 4.1
    --long-source truncate  # section 4.1
    --long-target truncate  # section 4.1
)
[ -d data-bin/pubmed ] ||
    hat preprocess pubmed --root "${ROOT:?the folder of the release, see preprocess/pubmed.py}" "${preprocess[@]}"

generate=(
    --split test
    --out results/pubmed/test.jsonl
    --overwrite
    --beam 2  # section 4.1
    --lenpen 1  # section 4.1
    --min-len 72  # section 4.1
    --max-len-b 966  # section 4.1
    --batch-size 16
)
hat generate checkpoints/pubmed/checkpoint_best.pt \
    data-bin/pubmed "${generate[@]}"
# section 5: "File2rouge was used"
hat score rouge \
    --like files2rouge results/pubmed/test.jsonl \
    --references data-bin/pubmed/text/test.jsonl \
    --out results/pubmed/test.score.json
