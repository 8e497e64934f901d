#!/usr/bin/env bash
# arXiv: abstracts of papers, 4,096 tokens.
# paper: Zhang et al. 2021, Table 4, row Poolingformer 4k
# needs: --root DIR, bart.large, 8 GPUs
#
# Section 3.2, "Summarization". What the paper does not print, regularization and the lengths of summaries, is that of
# Rohde et al. 2021, section 4.1 (recipe arxiv).
#
# ROOT=DIR bash generate_scripts/poolingformer_arxiv_4k.sh
# Written from configs/poolingformer_arxiv_4k.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/poolingformer_arxiv_4k
    --bpe gpt2  # BART's
    --max-source-tokens 4096  # Table 4
    --max-target-tokens 512  # ours; that of recipe arxiv
    --long-source truncate  # ours; that of recipe arxiv
    --long-target truncate  # ours; that of recipe arxiv
)
[ -d data-bin/poolingformer_arxiv_4k ] ||
    hat preprocess arxiv --root "${ROOT:?the folder of the release, see preprocess/arxiv.py}" "${preprocess[@]}"

generate=(
    --split test
    --out results/poolingformer_arxiv_4k/test.jsonl
    --overwrite
    --beam 5  # section 3.2
    --lenpen 2  # section 3.2
    --min-len 72  # ours; that of recipe arxiv
    --max-len-b 966  # ours; that of recipe arxiv
    --batch-size 16
)
hat generate checkpoints/poolingformer_arxiv_4k/checkpoint_best.pt \
    data-bin/poolingformer_arxiv_4k "${generate[@]}"
# ours; Rohde et al. 2021 score so
hat score rouge \
    --like files2rouge results/poolingformer_arxiv_4k/test.jsonl \
    --references data-bin/poolingformer_arxiv_4k/text/test.jsonl \
    --out results/poolingformer_arxiv_4k/test.score.json
