#!/usr/bin/env bash
# SAMSum from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 5).
#
# data:     SAMSum: chats written by linguists and their summaries (Gliwa et al. 2019). DIR has the release (files:
#           preprocess/samsum.py). Once:
#             hat preprocess samsum --out data-bin/samsum --bpe gpt2 --long-source truncate --long-target truncate \
#             --max-source-tokens 1024 --max-target-tokens 256 --root DIR
# weights:  checkpoints/cnn_dm/checkpoint_best.pt, of train_scripts/cnn_dm.sh
# GPUs:     1. For the same update on N GPUs: hat recipe train samsum --gpus N [FLAGS]
# update:   8 documents x 4 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan samsum --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/samsum/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --role-stream role \
    --save-dir checkpoints/samsum \
    --log-format json \
    --log-file checkpoints/samsum/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 3000 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.1 \
    --arch hat_bart_large \
    --finetune-from-model checkpoints/cnn_dm/checkpoint_best.pt \
    --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 \
    --weight-decay 0.01 \
    --clip-norm 0.1 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --lr 3e-05 \
    --bf16 \
    --batch-size 8 \
    --max-update 3000 \
    --warmup-updates 90 \
    --distributed-world-size 1 \
    --update-freq 4 \
    "$@"
