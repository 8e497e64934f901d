#!/usr/bin/env bash
# ListOps: the value of a nested expression, of 500 to 2,000 symbols. Long Range Arena.
#
# data:     data-bin/lra_listops/bin, of hat recipe preprocess lra_listops --root DIR (docs/datasets.md)
# weights:  random
# update:   32 documents x 1 = 32 documents an update, on 1 GPU; on other numbers, and with flags
#           that replace these: hat recipe train lra_listops --gpus N [FLAGS]
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
