#!/usr/bin/env bash
# MultiNLI with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on MNLI, as fairseq's example
# for GLUE has them.
#
# data:     MultiNLI: does a sentence follow from another one? (Williams et al. 2018). DIR has the release (files:
#           preprocess/mnli.py). Once:
#             hat preprocess mnli --out data-bin/mnli --bpe gpt2 --max-source-tokens 512 --long-source truncate --root \
#             DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train mnli --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan mnli --gpu-memory 24G says what fits
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
