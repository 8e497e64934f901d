#!/usr/bin/env bash
# TriviaQA on pages of Wikipedia with ERNIE-Sparse (Liu et al. 2022, Tables 4 and 9).
#
# data:     data-bin/ernie_sparse_triviaqa/bin, of hat recipe preprocess ernie_sparse_triviaqa --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   4 documents x 4 = 16 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train ernie_sparse_triviaqa --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/ernie_sparse_triviaqa/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task question_answering \
    --save-dir checkpoints/ernie_sparse_triviaqa \
    --log-format json \
    --log-file checkpoints/ernie_sparse_triviaqa/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 69160 \
    --criterion self_attention_regularization \
    --best-checkpoint-metric loss \
    --arch ernie_sparse_base \
    --finetune-from-model roberta.base/model.pt \
    --base-criterion answer_spans \
    --sar-roll 8 \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 3e-05 \
    --batch-size 4 \
    --bf16 \
    --sar-alpha 3 \
    --max-update 69160 \
    --warmup-updates 6916 \
    --distributed-world-size 1 \
    --update-freq 4 \
    "$@"
