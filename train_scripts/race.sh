#!/usr/bin/env bash
# RACE: the right answer of four on a text.
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash train_scripts/race.sh [FLAGS of fairseq-train]
# Written from configs/race.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/race
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source truncate
)
[ -d data-bin/race ] ||
    hat preprocess race --root "${ROOT:?the folder of the release, see preprocess/race.py}" "${preprocess[@]}"

train=(
    --task multiple_choice
    --seed 1  # ours
    --arch hat_roberta_base  # section 7
    # Ours. As the paper: checkpoints/roberta_pretraining/checkpoint_best.pt of recipe roberta_pretraining.
    --finetune-from-model roberta.base/model.pt
    --criterion document_labels
    --dropout 0.1  # section 7, after the first epoch
    --attention-dropout 0.1  # RoBERTa's, Liu et al. 2019
    --dropout-schedule '0,1'  # section 7: "we had to disable dropout for the first epoch and then set it to 0.1"
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # RoBERTa's, Liu et al. 2019
    --adam-eps 1e-06  # RoBERTa's, Liu et al. 2019
    --weight-decay 0.1  # RoBERTa's, Liu et al. 2019
    --lr 1e-05  # RoBERTa's, Liu et al. 2019
    --lr-scheduler polynomial_decay  # RoBERTa's, Liu et al. 2019
    --warmup-updates 1318  # RoBERTa's, Liu et al. 2019
    --max-update 21968  # RoBERTa's, Liu et al. 2019: 4 epochs of 87,866 questions
    --total-num-update 21968
    --batch-size 4  # of one GPU; ours: questions, each with four choices
    --bf16  # ours; RoBERTa's is fp16; on GPUs without bfloat16: --fp16 instead
    --save-dir checkpoints/race
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --log-format json
    --log-file checkpoints/race/train.log
    --update-freq 4  # 4 documents x 4 = 16 documents an update; RoBERTa's, Liu et al. 2019
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/race/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
