#!/usr/bin/env bash
# Pre-training of HAT's encoder (Rohde et al. 2021, section 7). "We follow RoBERTa for pre-training our model by using
# the same dataset, pre-processing steps and pre-training objective", with a BOS at every sentence. The settings are
# those of RoBERTa-base (Liu et al. 2019, Table 9). The paper compares with their Table 1, which is an earlier run with
# the same input (DOC-SENTENCES): for it --update-batch-size 256 --max-update 1000000 --warmup-updates 10000 --lr 1e-04.
#
# data:     documents of your own, train.jsonl and valid.jsonl in raw/roberta_pretraining. Once:
#             hat preprocess raw/roberta_pretraining --out data-bin/roberta_pretraining --kind mlm --bpe gpt2 \
#             --splitter punctuation --segments sentences --max-source-tokens 512
# weights:  random
# GPUs:     8. For the same update on N GPUs: hat recipe train roberta_pretraining --gpus N [FLAGS]
# update:   8 GPUs x 16 documents x 64 = 8,192 documents an update
# hours:    not in the paper, and not measured here
# memory:   hat plan roberta_pretraining --gpu-memory 24G says what fits
set -euo pipefail
fairseq-train data-bin/roberta_pretraining/bin \
    --user-dir "$(hat user-dir)" \
    --seed 1 \
    --task masked_document_lm \
    --save-dir checkpoints/roberta_pretraining \
    --log-format json \
    --log-file checkpoints/roberta_pretraining/train.log \
    --no-epoch-checkpoints \
    --optimizer adam \
    --lr-scheduler polynomial_decay \
    --total-num-update 500000 \
    --sample-break-mode eos \
    --criterion masked_lm \
    --weight-decay 0.01 \
    --bf16 \
    --arch hat_roberta_base \
    --adam-betas '(0.9, 0.98)' \
    --adam-eps 1e-06 \
    --dropout 0.1 \
    --attention-dropout 0.1 \
    --tokens-per-sample 512 \
    --lr 6e-04 \
    --batch-size 16 \
    --max-update 500000 \
    --warmup-updates 24000 \
    --distributed-world-size 8 \
    --update-freq 64 \
    "$@"
