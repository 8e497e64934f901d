#!/usr/bin/env bash
# Self-pretraining for Image of Long Range Arena. Then: hat recipe train lra_image --finetune-from-model
# checkpoints/lra_image_pretraining/checkpoint_best.pt --lr 1e-03
#
# data:     Image of Long Range Arena: the class of a picture from its 1,024 pixels in grey (Krizhevsky 2009; Tay et al.
#           2021). DIR has the release (files: preprocess/lra_image.py). Once:
#             hat preprocess lra_image --max-source-tokens 1026 --out data-bin/lra_image --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_image_pretraining --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_image_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_image/bin/input0 \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --arch ernie_sparse_lra_image \
    --max-positions 1026 \
    --save-dir checkpoints/lra_image_pretraining \
    --log-format json \
    --log-file checkpoints/lra_image_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.01 \
    --bf16 \
    --tokens-per-sample 1026 \
    --adam-betas '(0.9, 0.98)' \
    --batch-size 32 \
    --max-update 20000 \
    --warmup-updates 1000 \
    --mask-prob 0.5 \
    --lr 1e-03 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
