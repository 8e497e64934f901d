#!/usr/bin/env bash
# TyDi QA's primary tasks as Poolingformer does them (Zhang et al. 2021, Table 3).
#
# data:     data-bin/tydi_qa/bin, of hat recipe preprocess tydi_qa --root DIR (docs/datasets.md)
# weights:  xlmr.large/model.pt (docs/recipes.md says where from)
# update:   8 GPUs x 1 document x 8 = 64 documents an update, on 8 GPUs; on other numbers, and with flags
#           that replace these: hat recipe train tydi_qa --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/tydi_qa/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_question_answering \
    --max-positions 4096 \
    --save-dir checkpoints/tydi_qa \
    --log-format json \
    --log-file checkpoints/tydi_qa/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 8000 \
    --criterion document_answers \
    --best-checkpoint-metric loss \
    --arch poolingformer_large \
    --finetune-from-model xlmr.large/model.pt \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 2e-05 \
    --batch-size 1 \
    --checkpoint-activations \
    --bf16 \
    --max-update 8000 \
    --warmup-updates 800 \
    --distributed-world-size 8 \
    --update-freq 8 \
    "$@"
