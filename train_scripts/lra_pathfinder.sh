#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve? 32 x 32 pixels, the hard part. Long Range Arena.
#
# data:     Pathfinder of Long Range Arena: are two dots the ends of one curve? (Linsley et al. 2018; Tay et al. 2021.)
#           DIR has the release (files: preprocess/lra_pathfinder.py). Once:
#             hat preprocess lra_pathfinder --max-source-tokens 1026 --out data-bin/lra_pathfinder --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_pathfinder --gpus N [FLAGS]
# update:   512 documents x 1 = 512 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_pathfinder --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_pathfinder/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task sequence_classification \
    --arch ernie_sparse_lra_pathfinder \
    --max-positions 1026 \
    --save-dir checkpoints/lra_pathfinder \
    --log-format json \
    --log-file checkpoints/lra_pathfinder/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler cosine \
    --criterion document_labels \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-09 \
    --lr-period-updates 62400 \
    --dropout 0.2 \
    --attention-dropout 0.1 \
    --lr 1e-03 \
    --batch-size 512 \
    --max-update 62400 \
    --warmup-updates 312 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
