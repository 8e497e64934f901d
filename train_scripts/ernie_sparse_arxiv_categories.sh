#!/usr/bin/env bash
# Papers of arXiv in eleven categories with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
#
# data:     data-bin/ernie_sparse_arxiv_categories/bin, of hat recipe preprocess ernie_sparse_arxiv_categories --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   4 documents x 6 = 24 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train ernie_sparse_arxiv_categories --gpus N [FLAGS]
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
