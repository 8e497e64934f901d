#!/usr/bin/env bash
# ICSI meetings from the HAT of recipe cnn_dm (Rohde et al. 2021, Table 6).
#
# data:     data-bin/icsi/bin, of hat recipe preprocess icsi --root DIR (docs/datasets.md)
# weights:  checkpoints/cnn_dm/checkpoint_best.pt (docs/recipes.md says where from)
# update:   2 documents x 4 = 8 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train icsi --gpus N [FLAGS]
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
