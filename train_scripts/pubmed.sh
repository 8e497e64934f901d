#!/usr/bin/env bash
# PubMed from BART-large (Rohde et al. 2021, Table 3).
#
# data:     PubMed articles and their abstracts (Cohan et al. 2018). DIR has the release (files: preprocess/pubmed.py).
#           Once:
#             hat preprocess pubmed --out data-bin/pubmed --bpe gpt2 --long-source truncate --long-target truncate \
#             --max-source-tokens 3072 --max-target-tokens 512 --root DIR
# weights:  bart.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     2. For the same update on N GPUs: hat recipe train pubmed --gpus N [FLAGS]
# update:   2 GPUs x 2 documents x 32 = 128 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan pubmed --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/pubmed/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --max-source-positions 3072 \
    --save-dir checkpoints/pubmed \
    --log-format json \
    --log-file checkpoints/pubmed/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 30000 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.1 \
    --arch hat_bart_large \
    --finetune-from-model bart.large/model.pt \
    --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 \
    --weight-decay 0.01 \
    --clip-norm 0.1 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --lr 3e-05 \
    --bf16 \
    --extend-positions-from 512 \
    --batch-size 2 \
    --max-update 30000 \
    --warmup-updates 900 \
    --distributed-world-size 2 \
    --update-freq 32 \
    "$@"
