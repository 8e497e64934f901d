#!/usr/bin/env bash
# Pre-training of HAT's encoder.
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: documents of your own, 8 GPUs
#
# Recipes mnli, race and squad2 may start from its result. Section 7: "We follow RoBERTa (Liu et al., 2019) for
# pre-training our model by using the same dataset, pre-processing steps and pre-training objective", with a BOS at
# every sentence. The settings are those of RoBERTa-base (Liu et al. 2019, Table 9). The paper compares with their
# Table 1, which is an earlier run with the same input (DOC-SENTENCES): for it --update-batch-size 256 --max-update
# 1000000 --warmup-updates 10000 --lr 1e-04.
#
# bash train_scripts/roberta_pretraining.sh [FLAGS of fairseq-train]
# Written from configs/roberta_pretraining.yaml.
set -euo pipefail
preprocess=(
    # a folder of your own: RoBERTa's 160 GB are not available as one release
    --kind mlm
    --out data-bin/roberta_pretraining
    --splitter punctuation
    --bpe gpt2
    --segments sentences  # section 7: a BOS at every sentence
    --max-source-tokens 512  # RoBERTa's, Liu et al. 2019
)
[ -d data-bin/roberta_pretraining ] ||
    hat preprocess raw/roberta_pretraining "${preprocess[@]}"

train=(
    --task masked_document_lm
    --seed 1  # ours
    --arch hat_roberta_base  # section 7
    --tokens-per-sample 512  # RoBERTa's, Liu et al. 2019
    --sample-break-mode eos  # a sample is a row, as preprocessing has filled it
    --criterion masked_lm  # section 7: RoBERTa's objective; 15 % of the tokens, never sentence markers
    --dropout 0.1  # RoBERTa's, Liu et al. 2019, Table 9
    --attention-dropout 0.1  # RoBERTa's, Liu et al. 2019, Table 9
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # RoBERTa's, Liu et al. 2019, Table 9
    --adam-eps 1e-06  # RoBERTa's, Liu et al. 2019, Table 9
    --weight-decay 0.01  # RoBERTa's, Liu et al. 2019, Table 9
    --lr 6e-04  # RoBERTa's, Liu et al. 2019, Table 9
    --lr-scheduler polynomial_decay  # RoBERTa's, Liu et al. 2019, Table 9
    --warmup-updates 24000  # RoBERTa's, Liu et al. 2019, Table 9
    --max-update 500000  # RoBERTa's, Liu et al. 2019, Table 9
    --total-num-update 500000
    --batch-size 16  # of one GPU; ours: fairseq's example for RoBERTa
    --bf16  # ours
    --save-dir checkpoints/roberta_pretraining
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/roberta_pretraining/train.log
    --update-freq 64  # 8 GPUs x 16 documents x 64 = 8,192 documents an update; RoBERTa's, Liu et al. 2019, Table 9
    --distributed-world-size 8  # ours; RoBERTa had 1,024 V100
)
fairseq-train data-bin/roberta_pretraining/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
