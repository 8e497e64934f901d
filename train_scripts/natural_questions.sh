#!/usr/bin/env bash
# Natural Questions as Poolingformer answers them (Zhang et al. 2021, Table 2).
#
# data:     data-bin/natural_questions/bin, of hat recipe preprocess natural_questions --root DIR (docs/datasets.md)
# weights:  roberta.large/model.pt (docs/recipes.md says where from)
# update:   8 GPUs x 1 document x 8 = 64 documents an update, on 8 GPUs; on other numbers, and with flags
#           that replace these: hat recipe train natural_questions --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/natural_questions/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_question_answering \
    --max-positions 4096 \
    --save-dir checkpoints/natural_questions \
    --log-format json \
    --log-file checkpoints/natural_questions/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --criterion document_answers \
    --best-checkpoint-metric loss \
    --arch poolingformer_large \
    --finetune-from-model roberta.large/model.pt \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --weight-decay 0.1 \
    --lr 2e-05 \
    --batch-size 1 \
    --checkpoint-activations \
    --bf16 \
    --max-update 20000 \
    --warmup-updates 2000 \
    --distributed-world-size 8 \
    --update-freq 8 \
    "$@"
