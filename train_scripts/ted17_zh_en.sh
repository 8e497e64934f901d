#!/usr/bin/env bash
# TED17 Chinese-English, whole talks (Rohde et al. 2021, section 4.2, Table 7): 8,192 tokens x 2 on one V100 an update.
#
# data:     TED talks of IWSLT 2017, Chinese-English, whole talks (Rohde et al. 2021, section 4.2). DIR has the release
#           (files: preprocess/ted17_zh_en.py). Once:
#             hat preprocess ted17_zh_en --out data-bin/ted17_zh_en --target-tokenizer moses --max-source-tokens 512 \
#             --max-target-tokens 512 --long-source chunk --max-chunk-tokens 1024 --source-tokenizer jieba --root DIR
# weights:  random
# GPUs:     1. For the same update on N GPUs: hat recipe train ted17_zh_en --gpus N [FLAGS]
# update:   8,192 tokens x 2 = 16,384 tokens an update
# hours:    in the paper 1.5 on 1 V100, and 1 without hierarchy (--no-hierarchy)
# memory:   hat plan ted17_zh_en --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/ted17_zh_en/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --save-dir checkpoints/ted17_zh_en \
    --log-format json \
    --log-file checkpoints/ted17_zh_en/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 8000 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.2 \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --bf16 \
    --arch hat_transformer_ted_zh_en \
    --dropout 0.3 \
    --weight-decay 0.1 \
    --lr 1e-03 \
    --warmup-updates 100 \
    --max-tokens 8192 \
    --max-update 8000 \
    --distributed-world-size 1 \
    --update-freq 2 \
    "$@"
