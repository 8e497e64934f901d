#!/usr/bin/env bash
# WMT20 English-Czech, whole documents (Rohde et al. 2021, section 4.2, Table 7).
#
# data:     data-bin/wmt20_en_cs/bin, of hat recipe preprocess wmt20_en_cs --root DIR (docs/datasets.md)
# weights:  random
# hours:    in the paper 8 V100, 8 (5); in brackets its baseline
# update:   8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update, on 8 GPUs; on other numbers, and with flags
#           that replace these: hat recipe train wmt20_en_cs --gpus N [FLAGS]
set -euo pipefail
fairseq-train data-bin/wmt20_en_cs/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --save-dir checkpoints/wmt20_en_cs \
    --log-format json \
    --log-file checkpoints/wmt20_en_cs/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 15000 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.2 \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --bf16 \
    --max-tokens 1024 \
    --arch hat_transformer_wmt_en_cs \
    --dropout 0.2 \
    --weight-decay 0.1 \
    --lr 5e-04 \
    --warmup-updates 500 \
    --max-update 15000 \
    --distributed-world-size 8 \
    --update-freq 16 \
    "$@"
