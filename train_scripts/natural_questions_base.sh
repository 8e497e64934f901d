#!/usr/bin/env bash
# Natural Questions with Poolingformer's base size, for the ablations of Zhang et al. 2021, Tables 5 to 7. The paper
# trains these on one fifth of the training set (section 3.4), this recipe on all of it.
#
# data:     Natural Questions: questions to a search engine, each with a page of Wikipedia (Kwiatkowski et al. 2019).
#           DIR has the release (files: preprocess/natural_questions.py). Once:
#             hat preprocess natural_questions --out data-bin/natural_questions_base --bpe gpt2 --max-source-tokens \
#             4096 --long-source chunk --window-overlap 2528 --negative-windows 0.5 --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train natural_questions_base --gpus N [FLAGS]
# update:   8 GPUs x 1 document x 8 = 64 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan natural_questions_base --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/natural_questions_base/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_question_answering \
    --max-positions 4096 \
    --save-dir checkpoints/natural_questions_base \
    --log-format json \
    --log-file checkpoints/natural_questions_base/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --criterion document_answers \
    --best-checkpoint-metric loss \
    --arch poolingformer_base \
    --finetune-from-model roberta.base/model.pt \
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
