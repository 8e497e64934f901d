#!/usr/bin/env bash
# Papers of arXiv in eleven categories with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
#
# data:     Papers of arXiv in eleven categories (He et al. 2019, "Long Document Classification From Local Word
#           Glimpses"). DIR has the release (files: preprocess/arxiv_categories.py). Once:
#             hat preprocess arxiv_categories --out data-bin/ernie_sparse_arxiv_categories --bpe gpt2 --segments none \
#             --max-source-tokens 4096 --long-source truncate --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train ernie_sparse_arxiv_categories --gpus N [FLAGS]
# update:   4 documents x 6 = 24 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan ernie_sparse_arxiv_categories --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/ernie_sparse_arxiv_categories/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_classification \
    --save-dir checkpoints/ernie_sparse_arxiv_categories \
    --log-format json \
    --log-file checkpoints/ernie_sparse_arxiv_categories/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 12090 \
    --criterion self_attention_regularization \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --arch ernie_sparse_base \
    --finetune-from-model roberta.base/model.pt \
    --base-criterion document_labels \
    --sar-roll 8 \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 6e-05 \
    --batch-size 4 \
    --bf16 \
    --sar-alpha 10 \
    --max-update 12090 \
    --warmup-updates 1209 \
    --distributed-world-size 1 \
    --update-freq 6 \
    "$@"
