#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on SQuAD.
#
# data:     SQuAD 2.0: questions on paragraphs of Wikipedia, half of which have no answer there (Rajpurkar et al. 2018).
#           DIR has the release (files: preprocess/squad2.py). Once:
#             hat preprocess squad2 --out data-bin/squad2 --bpe gpt2 --max-source-tokens 512 --long-source chunk \
#             --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train squad2 --gpus N [FLAGS]
# update:   16 documents x 3 = 48 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan squad2 --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/squad2/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task question_answering \
    --save-dir checkpoints/squad2 \
    --log-format json \
    --log-file checkpoints/squad2/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 5430 \
    --criterion answer_spans \
    --best-checkpoint-metric loss \
    --arch hat_roberta_base \
    --finetune-from-model roberta.base/model.pt \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.01 \
    --lr 1.5e-05 \
    --bf16 \
    --batch-size 16 \
    --max-update 5430 \
    --warmup-updates 326 \
    --distributed-world-size 1 \
    --update-freq 3 \
    "$@"
