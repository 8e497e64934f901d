#!/usr/bin/env bash
# TyDi QA's primary tasks as Poolingformer does them (Zhang et al. 2021, Table 3).
#
# data:     TyDi QA: questions in eleven languages, each with an article of Wikipedia; the primary tasks (Clark et al.
#           2020). DIR has the release (files: preprocess/tydi_qa.py). Once:
#             hat preprocess tydi_qa --out data-bin/tydi_qa --bpe sentencepiece --max-source-tokens 4096 --long-source \
#             chunk --window-overlap 2528 --negative-windows 0.5 --bpe-dir xlmr.large --root DIR
# weights:  xlmr.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train tydi_qa --gpus N [FLAGS]
# update:   8 GPUs x 1 document x 8 = 64 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan tydi_qa --gpu-memory 24G says what fits
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
