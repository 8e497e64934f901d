#!/usr/bin/env bash
# Self-pretraining for Pathfinder of Long Range Arena. Then: hat recipe train lra_pathfinder --finetune-from-model
# checkpoints/lra_pathfinder_pretraining/checkpoint_best.pt --lr 5e-04
#
# data:     Pathfinder of Long Range Arena: are two dots the ends of one curve? (Linsley et al. 2018; Tay et al. 2021.)
#           DIR has the release (files: preprocess/lra_pathfinder.py). Once:
#             hat preprocess lra_pathfinder --max-source-tokens 1026 --out data-bin/lra_pathfinder --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_pathfinder_pretraining --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_pathfinder_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_pathfinder/bin/input0 \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --arch ernie_sparse_lra_pathfinder \
    --max-positions 1026 \
    --save-dir checkpoints/lra_pathfinder_pretraining \
    --log-format json \
    --log-file checkpoints/lra_pathfinder_pretraining/train.log \
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
