#!/usr/bin/env bash
# ICSI meetings from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 6).
#
# data:     ICSI meetings: transcripts with speakers and roles, abstractive summaries (Janin et al. 2003). The package
#           has it. Once:
#             hat preprocess icsi --out data-bin/icsi --bpe gpt2 --long-source truncate --long-target truncate --roles \
#             both --max-source-tokens 3072 --max-target-tokens 1024
# weights:  checkpoints/cnn_dm/checkpoint_best.pt, of train_scripts/cnn_dm.sh
# GPUs:     1. For the same update on N GPUs: hat recipe train icsi --gpus N [FLAGS]
# update:   2 documents x 4 = 8 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan icsi --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/icsi/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --role-stream role \
    --max-source-positions 3072 \
    --save-dir checkpoints/icsi \
    --log-format json \
    --log-file checkpoints/icsi/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 400 \
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
    --batch-size 2 \
    --max-update 400 \
    --warmup-updates 12 \
    --validate-interval 4 \
    --save-interval 4 \
    --distributed-world-size 1 \
    --update-freq 4 \
    "$@"
