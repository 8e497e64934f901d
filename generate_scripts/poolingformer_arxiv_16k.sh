#!/usr/bin/env bash
# arXiv with Poolingformer, 16,384 tokens (Zhang et al. 2021, Table 4).
# It needs the data and the checkpoint of train_scripts/poolingformer_arxiv_16k.sh.
# Another split or model: hat recipe generate poolingformer_arxiv_16k [FLAGS].
set -euo pipefail
hat generate checkpoints/poolingformer_arxiv_16k/checkpoint_best.pt data-bin/poolingformer_arxiv_16k \
    --split test \
    --out results/poolingformer_arxiv_16k/test.jsonl \
    --overwrite \
    --batch-size 16 \
    --beam 5 \
    --lenpen 2 \
    --min-len 72 \
    --max-len-b 966
hat score rouge \
    --like files2rouge results/poolingformer_arxiv_16k/test.jsonl \
    --references data-bin/poolingformer_arxiv_16k/text/test.jsonl \
    --out results/poolingformer_arxiv_16k/test.score.json
