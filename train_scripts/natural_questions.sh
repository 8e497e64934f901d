#!/usr/bin/env bash
# Natural Questions as Poolingformer answers them (Zhang et al. 2021, Table 2).
#
# data:     Natural Questions: questions to a search engine, each with a page of Wikipedia (Kwiatkowski et al. 2019).
#           DIR has the release (files: preprocess/natural_questions.py). Once:
#             hat preprocess natural_questions --out data-bin/natural_questions --bpe gpt2 --max-source-tokens 4096 \
#             --long-source chunk --window-overlap 2528 --negative-windows 0.5 --root DIR
# weights:  roberta.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train natural_questions --gpus N [FLAGS]
# update:   8 GPUs x 1 document x 8 = 64 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan natural_questions --gpu-memory 24G says what fits
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
