#!/usr/bin/env bash
# arXiv with Poolingformer, 4,096 tokens (Zhang et al. 2021, Table 4).
#
# data:     arXiv articles and their abstracts (Cohan et al. 2018). DIR has the release (files: preprocess/arxiv.py).
#           Once:
#             hat preprocess arxiv --out data-bin/poolingformer_arxiv_4k --bpe gpt2 --long-source truncate \
#             --long-target truncate --max-source-tokens 4096 --max-target-tokens 512 --root DIR
# weights:  bart.large/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train poolingformer_arxiv_4k --gpus N [FLAGS]
# update:   8 GPUs x 1 document x 16 = 128 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan poolingformer_arxiv_4k --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/poolingformer_arxiv_4k/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task document_to_text \
    --max-source-positions 4096 \
    --save-dir checkpoints/poolingformer_arxiv_4k \
    --log-format json \
    --log-file checkpoints/poolingformer_arxiv_4k/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 15862 \
    --criterion chunked_label_smoothed_cross_entropy \
    --label-smoothing 0.1 \
    --arch poolingformer_bart_large \
    --finetune-from-model bart.large/model.pt \
    --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 \
    --weight-decay 0.01 \
    --clip-norm 0.1 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --lr 2e-04 \
    --bf16 \
    --batch-size 1 \
    --max-update 15862 \
    --warmup-updates 1000 \
    --checkpoint-activations \
    --distributed-world-size 8 \
    --update-freq 16 \
    "$@"
