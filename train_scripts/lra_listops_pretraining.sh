#!/usr/bin/env bash
# Self-pretraining for ListOps of Long Range Arena. Then: hat recipe train lra_listops --finetune-from-model
# checkpoints/lra_listops_pretraining/checkpoint_best.pt --lr 1e-04
#
# data:     ListOps of Long Range Arena: the value, 0 to 9, of a nested expression (Nangia and Bowman 2018; Tay et al.
#           2021). DIR has the release (files: preprocess/lra_listops.py). Once:
#             hat preprocess lra_listops --max-source-tokens 2002 --long-source truncate --out data-bin/lra_listops \
#             --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_listops_pretraining --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_listops_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_listops/bin/input0 \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --arch ernie_sparse_lra_listops \
    --max-positions 2002 \
    --save-dir checkpoints/lra_listops_pretraining \
    --log-format json \
    --log-file checkpoints/lra_listops_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 20000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.01 \
    --bf16 \
    --tokens-per-sample 2002 \
    --adam-betas '(0.9, 0.98)' \
    --batch-size 32 \
    --max-update 20000 \
    --warmup-updates 1000 \
    --mask-prob 0.1 \
    --lr 1e-03 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
