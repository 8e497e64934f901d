#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on SQuAD.
#
# data:     data-bin/squad2/bin, of hat recipe preprocess squad2 --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   16 documents x 3 = 48 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train squad2 --gpus N [FLAGS]
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
