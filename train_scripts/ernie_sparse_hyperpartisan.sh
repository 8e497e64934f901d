#!/usr/bin/env bash
# Hyperpartisan news with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9). Alpha and roll are 0: one pass, so the batch
# is not halved.
#
# data:     Hyperpartisan news: does an article take one side blindly? The part labelled by article (Kiesel et al.
#           2019). DIR has the release (files: preprocess/hyperpartisan.py). Once:
#             hat preprocess hyperpartisan --out data-bin/ernie_sparse_hyperpartisan --bpe gpt2 --segments none \
#             --max-source-tokens 1024 --long-source truncate --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train ernie_sparse_hyperpartisan --gpus N [FLAGS]
# update:   16 documents x 1 = 16 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan ernie_sparse_hyperpartisan --gpu-memory 24G says what fits
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
