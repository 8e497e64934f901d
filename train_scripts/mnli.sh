#!/usr/bin/env bash
# MultiNLI: does one sentence follow from another?
# paper: Rohde et al. 2021, Table 8, row HAT (Encoder)
# needs: --root DIR, roberta.base, 1 GPU
#
# Section 7: HAT's encoder. The paper pre-trains the encoder with the hierarchy and prints nothing on fine-tuning but
# "dropout for the first epoch" of RACE; the settings are RoBERTa's own (Liu et al. 2019, Table 10 and section 5.1),
# linear warm-up over 6 % of the updates and linear decay. The baseline: --no-hierarchy.
#
# ROOT=DIR bash train_scripts/mnli.sh [FLAGS of fairseq-train]
# Written from configs/mnli.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/mnli
    --bpe gpt2
    --max-source-tokens 512  # RoBERTa's positions
    --long-source truncate
)
[ -d data-bin/mnli ] ||
    hat preprocess mnli --root "${ROOT:?the folder of the release, see preprocess/mnli.py}" "${preprocess[@]}"

train=(
    --task document_classification
    --seed 1  # ours
    --arch hat_roberta_base  # section 7
    # Ours. As the paper: checkpoints/roberta_pretraining/checkpoint_best.pt of recipe roberta_pretraining.
    --finetune-from-model roberta.base/model.pt
    --criterion document_labels
    --dropout 0.1  # RoBERTa's, Liu et al. 2019
    --attention-dropout 0.1  # RoBERTa's, Liu et al. 2019
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # RoBERTa's, Liu et al. 2019
    --adam-eps 1e-06  # RoBERTa's, Liu et al. 2019
    --weight-decay 0.1  # RoBERTa's, Liu et al. 2019
    --lr 1e-05  # RoBERTa's on MNLI, as fairseq's example for GLUE has it
    --lr-scheduler polynomial_decay  # RoBERTa's, Liu et al. 2019
    --warmup-updates 7432  # RoBERTa's on MNLI, as fairseq's example for GLUE has it
    --max-update 123873  # RoBERTa's on MNLI, as fairseq's example for GLUE has it: 10 epochs
    --total-num-update 123873
    --batch-size 32  # of one GPU; ours
    --bf16  # ours; RoBERTa's is fp16; on GPUs without bfloat16: --fp16 instead
    --save-dir checkpoints/mnli
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --log-format json
    --log-file checkpoints/mnli/train.log
    # 32 documents x 1 = 32 documents an update; RoBERTa's on MNLI, as fairseq's example for GLUE has it
    --update-freq 1
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/mnli/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
