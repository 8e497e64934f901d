#!/usr/bin/env bash
# Self-pretraining for Retrieval of Long Range Arena. Then: hat recipe train lra_retrieval --finetune-from-model
# checkpoints/lra_retrieval_pretraining/checkpoint_best.pt --lr 5e-04
#
# data:     Retrieval of Long Range Arena: does one paper cite the other? (Radev et al. 2013; Tay et al. 2021.) DIR has
#           the release (files: preprocess/lra_retrieval.py). Once:
#             hat preprocess lra_retrieval --max-source-tokens 4002 --long-source truncate --out \
#             data-bin/lra_retrieval --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_retrieval_pretraining --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_retrieval_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_retrieval/bin/input0 \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --arch ernie_sparse_lra_retrieval \
    --max-positions 4002 \
    --save-dir checkpoints/lra_retrieval_pretraining \
    --log-format json \
    --log-file checkpoints/lra_retrieval_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.01 \
    --bf16 \
    --tokens-per-sample 4002 \
    --adam-betas '(0.9, 0.98)' \
    --batch-size 32 \
    --max-update 20000 \
    --warmup-updates 1000 \
    --mask-prob 0.15 \
    --lr 5e-03 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
