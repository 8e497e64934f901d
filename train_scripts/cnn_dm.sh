#!/usr/bin/env bash
# CNN/DailyMail from BART-large (Rohde et al. 2021, Table 4). SAMSum, AMI and ICSI start from its result.
#
# data:     CNN/DailyMail news and their highlights (Hermann et al. 2015), non-anonymised (See et al. 2017). DIR has the
#           release (files: preprocess/cnn_dm.py). Once:
#             hat preprocess cnn_dm --out data-bin/cnn_dm --bpe gpt2 --long-source truncate --long-target truncate \
#             --max-source-tokens 1024 --max-target-tokens 256 --root DIR
# weights:  bart.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     1. For the same update on N GPUs: hat recipe train cnn_dm --gpus N [FLAGS]
# update:   4 documents x 16 = 64 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan cnn_dm --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/cnn_dm/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --save-dir checkpoints/cnn_dm \
    --log-format json \
    --log-file checkpoints/cnn_dm/train.log \
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
