#!/usr/bin/env bash
# MultiNLI with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on MNLI, as fairseq's example
# for GLUE has them.
#
# data:     data-bin/mnli/bin, of hat recipe preprocess mnli --root DIR (docs/datasets.md)
# weights:  roberta.base/model.pt (docs/recipes.md says where from)
# update:   32 documents x 1 = 32 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train mnli --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/mnli/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_classification \
    --save-dir checkpoints/mnli \
    --log-format json \
    --log-file checkpoints/mnli/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 123873 \
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
    --batch-size 32 \
    --max-update 123873 \
    --warmup-updates 7432 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
