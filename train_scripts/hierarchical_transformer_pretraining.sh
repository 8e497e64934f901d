#!/usr/bin/env bash
# Pre-training on long pages of C4 from RoBERTa-base, with the training settings in the model card of
# hierarchical-transformer-base-4096; mask and weight decay are those of the authors' script.
#
# data:     C4, English: long web pages to pre-train on (Raffel et al. 2020). DIR has the release (files:
#           preprocess/c4.py). Once:
#             hat preprocess c4 --out data-bin/hierarchical_transformer_pretraining --bpe gpt2 --segments packed \
#             --max-segments 32 --max-source-tokens 4096 --root DIR
# weights:  roberta.base/model.pt, of docs/recipes.md#all-recipes
# GPUs:     8. For the same update on N GPUs: hat recipe train hierarchical_transformer_pretraining --gpus N [FLAGS]
# update:   8 GPUs x 2 documents x 8 = 128 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan hierarchical_transformer_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/hierarchical_transformer_pretraining/bin \
    --user-dir "$(hat user-dir)" \
    --seed 42 \
    --task masked_document_lm \
    --save-dir checkpoints/hierarchical_transformer_pretraining \
    --log-format json \
    --log-file checkpoints/hierarchical_transformer_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 50000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.01 \
    --bf16 \
    --arch hierarchical_transformer_base_4096 \
    --segment-by marker \
    --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 \
    --finetune-from-model roberta.base/model.pt \
    --tokens-per-sample 4096 \
    --lr 1e-04 \
    --batch-size 2 \
    --max-update 50000 \
    --warmup-updates 5000 \
    --distributed-world-size 8 \
    --update-freq 8 \
    "$@"
