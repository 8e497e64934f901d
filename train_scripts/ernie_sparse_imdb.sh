#!/usr/bin/env bash
# IMDB with ERNIE-Sparse (Liu et al. 2022, Tables 3 and 9).
#
# data:     IMDB: reviews of films, good or bad (Maas et al. 2011). DIR has the release (files: preprocess/imdb.py).
#           Once:
#             hat preprocess imdb --out data-bin/ernie_sparse_imdb --bpe gpt2 --segments none --max-source-tokens 2048 \
#             --long-source truncate --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train ernie_sparse_imdb --gpus N [FLAGS]
# update:   8 documents x 4 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan ernie_sparse_imdb --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/ernie_sparse_imdb/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_classification \
    --save-dir checkpoints/ernie_sparse_imdb \
    --log-format json \
    --log-file checkpoints/ernie_sparse_imdb/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 14080 \
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
    --lr 1e-05 \
    --batch-size 8 \
    --bf16 \
    --sar-alpha 0.1 \
    --max-update 14080 \
    --warmup-updates 1408 \
    --distributed-world-size 1 \
    --update-freq 4 \
    "$@"
