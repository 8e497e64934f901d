#!/usr/bin/env bash
# SQuAD 2.0: the answer in a paragraph, or none.
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash train_scripts/squad2.sh [FLAGS of fairseq-train]
# Written from configs/squad2.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/squad2
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source chunk
)
[ -d data-bin/squad2 ] ||
    hat preprocess squad2 --root "${ROOT:?the folder of the release, see preprocess/squad2.py}" "${preprocess[@]}"

train=(
    --task question_answering
    --seed 1  # ours
    --arch hat_roberta_base  # section 7
    # Ours. As the paper: checkpoints/roberta_pretraining/checkpoint_best.pt of recipe roberta_pretraining.
    --finetune-from-model roberta.base/model.pt
    --criterion answer_spans
    --dropout 0.1  # RoBERTa's, Liu et al. 2019
    --attention-dropout 0.1  # RoBERTa's, Liu et al. 2019
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # RoBERTa's, Liu et al. 2019
    --adam-eps 1e-06  # RoBERTa's, Liu et al. 2019
    --weight-decay 0.01  # RoBERTa's, Liu et al. 2019
    --lr 1.5e-05  # RoBERTa's, Liu et al. 2019
    --lr-scheduler polynomial_decay  # RoBERTa's, Liu et al. 2019
    --warmup-updates 326  # RoBERTa's, Liu et al. 2019
    --max-update 5430  # RoBERTa's, Liu et al. 2019: 2 epochs of 130,319 questions
    --total-num-update 5430
    --batch-size 16  # of one GPU; ours
    --bf16  # ours; RoBERTa's is fp16; on GPUs without bfloat16: --fp16 instead
    --save-dir checkpoints/squad2
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric loss  # ours: the loss of the spans
    --log-format json
    --log-file checkpoints/squad2/train.log
    --update-freq 3  # 16 documents x 3 = 48 documents an update; RoBERTa's, Liu et al. 2019
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/squad2/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
