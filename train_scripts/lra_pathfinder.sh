#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve? 32 x 32 pixels, the hard part. Long Range Arena.
#
# data:     data-bin/lra_pathfinder/bin, of hat recipe preprocess lra_pathfinder --root DIR (docs/datasets.md)
# weights:  random
# update:   512 documents x 1 = 512 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train lra_pathfinder --gpus N [FLAGS]
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
