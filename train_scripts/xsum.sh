#!/usr/bin/env bash
# XSum from BART-large (Rohde et al. 2021, Table 4).
#
# data:     XSum: BBC articles, the first sentence is the summary (Narayan et al. 2018). DIR has the release (files:
#           preprocess/xsum.py). Once:
#             hat preprocess xsum --out data-bin/xsum --bpe gpt2 --long-source truncate --long-target truncate \
#             --max-source-tokens 1024 --max-target-tokens 256 --root DIR
# weights:  bart.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train xsum --gpus N [FLAGS]
# update:   4 documents x 16 = 64 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan xsum --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/xsum/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --save-dir checkpoints/xsum \
    --log-format json \
    --log-file checkpoints/xsum/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.1 \
    --arch hat_bart_large \
    --finetune-from-model bart.large/model.pt \
    --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 \
    --weight-decay 0.01 \
    --clip-norm 0.1 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --lr 3e-05 \
    --bf16 \
    --batch-size 4 \
    --max-update 20000 \
    --warmup-updates 500 \
    --distributed-world-size 1 \
    --update-freq 16 \
    "$@"
