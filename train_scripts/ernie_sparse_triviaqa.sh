#!/usr/bin/env bash
# TriviaQA on pages of Wikipedia with ERNIE-Sparse (Liu et al. 2022, Tables 4 and 9).
#
# data:     TriviaQA, the part on Wikipedia: questions of quizzes, each with pages that may tell the answer (Joshi et
#           al. 2017). DIR has the release (files: preprocess/triviaqa.py). Once:
#             hat preprocess triviaqa --out data-bin/ernie_sparse_triviaqa --bpe gpt2 --segments none \
#             --max-source-tokens 4096 --long-source truncate --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train ernie_sparse_triviaqa --gpus N [FLAGS]
# update:   4 documents x 4 = 16 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan ernie_sparse_triviaqa --gpu-memory 24G says what fits
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
