#!/usr/bin/env bash
# Text of Long Range Arena.
# paper: Amos et al. 2024, on the model of Liu et al. 2022
# needs: --root DIR, 1 GPU
#
# Self-pretraining: masked symbols of the sequences that are to be classified, in the same folder of data, with the
# same dictionary (Amos, Berant and Gupta 2024). Numbers of updates and of the warm-up are ours. Recipe lra_text may
# start from its result:
# hat recipe train lra_text --finetune-from-model checkpoints/lra_text_pretraining/checkpoint_best.pt --lr 1e-04
#
# ROOT=DIR bash train_scripts/lra_text_pretraining.sh [FLAGS of fairseq-train]
# Written from configs/lra_text_pretraining.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_text  # the folder of recipe lra_text
    --max-source-tokens 1002  # <s>, 1,000 bytes, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_text ] ||
    hat preprocess lra_text --root "${ROOT:?the folder of the release, see preprocess/lra_text.py}" "${preprocess[@]}"

train=(
    --task masked_document_lm
    --seed 1
    --arch ernie_sparse_lra_text
    --max-positions 1002
    --tokens-per-sample 1002
    --sample-break-mode eos  # a sample is a row, as preprocessing has filled it
    --mask-prob 0.15  # Amos et al. 2024
    --criterion masked_lm
    --optimizer adam
    --adam-betas '(0.9, 0.98)'
    --weight-decay 0.01
    --lr 5e-04  # Amos et al. 2024
    --lr-scheduler polynomial_decay  # linear, to 0 at total-num-update
    --warmup-updates 1000  # ours
    --max-update 20000  # ours
    --total-num-update 20000
    --batch-size 32
    --bf16  # ours
    --save-dir checkpoints/lra_text_pretraining
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/lra_text_pretraining/train.log
    --update-freq 1  # 32 documents x 1 = 32 documents an update
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/lra_text/bin/input0 --user-dir "$(hat user-dir)" "${train[@]}" "$@"
