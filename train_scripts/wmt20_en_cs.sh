#!/usr/bin/env bash
# WMT20 English-Czech, whole documents (Rohde et al. 2021, section 4.2, Table 7).
#
# data:     WMT20 news, English-Czech, whole documents (Rohde et al. 2021, section 4.2). DIR has the release (files:
#           preprocess/wmt20_en_cs.py). Once:
#             hat preprocess wmt20_en_cs --out data-bin/wmt20_en_cs --target-tokenizer moses --max-source-tokens 512 \
#             --max-target-tokens 512 --long-source chunk --max-chunk-tokens 1024 --source-tokenizer moses --root DIR
# weights:  random
# GPUs:     8. For the same update on N GPUs: hat recipe train wmt20_en_cs --gpus N [FLAGS]
# update:   8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update
# hours:    in the paper 8 on 8 V100, and 5 without hierarchy (--no-hierarchy)
# memory:   hat plan wmt20_en_cs --gpu-memory 24G says what fits
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
