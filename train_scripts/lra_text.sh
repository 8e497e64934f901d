#!/usr/bin/env bash
# Text: reviews of films as bytes, truncated to 1,000. Long Range Arena.
#
# data:     Text of Long Range Arena: reviews of films, good or bad, as bytes (Maas et al. 2011; Tay et al. 2021). DIR
#           has the release (files: preprocess/lra_text.py). Once:
#             hat preprocess lra_text --max-source-tokens 1002 --long-source truncate --out data-bin/lra_text --root \
#             DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_text --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_text --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_text/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task sequence_classification \
    --arch ernie_sparse_lra_text \
    --max-positions 1002 \
    --save-dir checkpoints/lra_text \
    --log-format json \
    --log-file checkpoints/lra_text/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler inverse_sqrt \
    --criterion document_labels \
    --best-checkpoint-metric accuracy \
    --maximize-best-checkpoint-metric \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-09 \
    --weight-decay 0.1 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --batch-size 32 \
    --save-interval-updates 2000 \
    --keep-interval-updates 1 \
    --lr 0.0005590169943749475 \
    --warmup-updates 8000 \
    --max-update 20000 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
