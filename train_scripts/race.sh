#!/usr/bin/env bash
# RACE with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on RACE.
#
# data:     data-bin/race/bin, of hat recipe preprocess race --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   4 documents x 4 = 16 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train race --gpus N [FLAGS]
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
