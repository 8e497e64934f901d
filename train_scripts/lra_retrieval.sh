#!/usr/bin/env bash
# Retrieval: does one paper cite the other? Two texts as bytes, each truncated to 4,000. Long Range Arena.
#
# data:     Retrieval of Long Range Arena: does one paper cite the other? (Radev et al. 2013; Tay et al. 2021.) DIR has
#           the release (files: preprocess/lra_retrieval.py). Once:
#             hat preprocess lra_retrieval --max-source-tokens 4002 --long-source truncate --out \
#             data-bin/lra_retrieval --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_retrieval --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_retrieval --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_retrieval/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task sequence_classification \
    --arch ernie_sparse_lra_retrieval \
    --max-positions 4002 \
    --save-dir checkpoints/lra_retrieval \
    --log-format json \
    --log-file checkpoints/lra_retrieval/train.log \
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
    --save-interval-updates 500 \
    --keep-interval-updates 1 \
    --lr 0.0005590169943749475 \
    --warmup-updates 8000 \
    --max-update 5000 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
