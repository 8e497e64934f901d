#!/usr/bin/env bash
# RACE with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on RACE.
#
# data:     RACE: English examinations, four choices for each question (Lai et al. 2017). DIR has the release (files:
#           preprocess/race.py). Once:
#             hat preprocess race --out data-bin/race --bpe gpt2 --max-source-tokens 512 --long-source truncate --root \
#             DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train race --gpus N [FLAGS]
# update:   4 documents x 4 = 16 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan race --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/race/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task multiple_choice \
    --save-dir checkpoints/race \
    --log-format json \
    --log-file checkpoints/race/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 21968 \
    --criterion document_labels \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --arch hat_roberta_base \
    --finetune-from-model roberta.base/model.pt \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 1e-05 \
    --bf16 \
    --dropout-schedule 0,1 \
    --batch-size 4 \
    --max-update 21968 \
    --warmup-updates 1318 \
    --distributed-world-size 1 \
    --update-freq 4 \
    "$@"
