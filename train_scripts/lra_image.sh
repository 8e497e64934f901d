#!/usr/bin/env bash
# Image: the class of a grey picture of CIFAR-10, pixel by pixel. Long Range Arena.
#
# data:     Image of Long Range Arena: the class of a picture from its 1,024 pixels in grey (Krizhevsky 2009; Tay et al.
#           2021). DIR has the release (files: preprocess/lra_image.py). Once:
#             hat preprocess lra_image --max-source-tokens 1026 --out data-bin/lra_image --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_image --gpus N [FLAGS]
# update:   256 documents x 1 = 256 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_image --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_image/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task sequence_classification \
    --arch ernie_sparse_lra_image \
    --max-positions 1026 \
    --save-dir checkpoints/lra_image \
    --log-format json \
    --log-file checkpoints/lra_image/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler cosine \
    --criterion document_labels \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-09 \
    --lr-period-updates 35000 \
    --dropout 0.3 \
    --attention-dropout 0.2 \
    --lr 5e-04 \
    --batch-size 256 \
    --max-update 35000 \
    --warmup-updates 175 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
