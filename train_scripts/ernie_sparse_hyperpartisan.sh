#!/usr/bin/env bash
# Hyperpartisan news with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9). Alpha and roll are 0: one pass, so the batch
# is not halved.
#
# data:     data-bin/ernie_sparse_hyperpartisan/bin, of hat recipe preprocess ernie_sparse_hyperpartisan --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   16 documents x 1 = 16 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train ernie_sparse_hyperpartisan --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/ernie_sparse_hyperpartisan/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_classification \
    --save-dir checkpoints/ernie_sparse_hyperpartisan \
    --log-format json \
    --log-file checkpoints/ernie_sparse_hyperpartisan/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 660 \
    --criterion document_labels \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --arch ernie_sparse_base \
    --finetune-from-model roberta.base/model.pt \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 3e-05 \
    --batch-size 16 \
    --bf16 \
    --max-update 660 \
    --warmup-updates 66 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
