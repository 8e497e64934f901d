#!/usr/bin/env bash
# Pre-training of ERNIE-Sparse from RoBERTa-base (Liu et al. 2022, section 4.2.1, A.1 and Table 8). Alpha is 0 there, so
# the criterion is masked_lm alone. Adam's betas are RoBERTa's (Liu et al. 2019, Table 9). The paper validates on 5 % of
# the training data (A.1.1): the validation part of your own folder. Documents of more than 4,096 tokens are divided, as
# in A.1.2; section 4.2.1 truncates them.
#
# data:     documents of your own, train.jsonl and valid.jsonl in raw/ernie_sparse_pretraining. Once:
#             hat preprocess raw/ernie_sparse_pretraining --out data-bin/ernie_sparse_pretraining --kind mlm --bpe \
#             gpt2 --splitter punctuation --segments none --max-source-tokens 4096
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train ernie_sparse_pretraining --gpus N [FLAGS]
# update:   8 GPUs x 2 documents x 16 = 256 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan ernie_sparse_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/ernie_sparse_pretraining/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --save-dir checkpoints/ernie_sparse_pretraining \
    --log-format json \
    --log-file checkpoints/ernie_sparse_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 1000000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.1 \
    --bf16 \
    --arch ernie_sparse_base \
    --finetune-from-model roberta.base/model.pt \
    --tokens-per-sample 4096 \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --lr 3e-05 \
    --batch-size 2 \
    --max-update 1000000 \
    --warmup-updates 10000 \
    --distributed-world-size 8 \
    --update-freq 16 \
    "$@"
