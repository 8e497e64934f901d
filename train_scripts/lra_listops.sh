#!/usr/bin/env bash
# ListOps: the value of a nested expression, of 500 to 2,000 symbols. Long Range Arena.
#
# data:     ListOps of Long Range Arena: the value, 0 to 9, of a nested expression (Nangia and Bowman 2018; Tay et al.
#           2021). DIR has the release (files: preprocess/lra_listops.py). Once:
#             hat preprocess lra_listops --max-source-tokens 2002 --long-source truncate --out data-bin/lra_listops \
#             --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train lra_listops --gpus N [FLAGS]
# update:   32 documents x 1 = 32 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan lra_listops --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/lra_listops/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task sequence_classification \
    --arch ernie_sparse_lra_listops \
    --max-positions 2002 \
    --save-dir checkpoints/lra_listops \
    --log-format json \
    --log-file checkpoints/lra_listops/train.log \
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
    --lr 0.0015811388300841897 \
    --warmup-updates 1000 \
    --max-update 5000 \
    --distributed-world-size 1 \
    --update-freq 1 \
    "$@"
