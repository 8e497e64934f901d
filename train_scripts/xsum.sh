#!/usr/bin/env bash
# XSum: news in one sentence.
# paper: Rohde et al. 2021, Table 4, row HAT-BART
# needs: --root DIR, bart.large, 1 GPU
#
# Section 4.1, "News datasets": HAT from BART-large. The baseline, row Transformer-BART: --no-hierarchy. Its numbers
# of steps and of documents an update are those of CNN/DailyMail; the paper states none of its own.
#
# ROOT=DIR bash train_scripts/xsum.sh [FLAGS of fairseq-train]
# Written from configs/xsum.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/xsum
    --bpe gpt2  # section 4.1, on the long documents, also for news
    --max-source-tokens 1024  # section 4.1
    --max-target-tokens 256  # section 4.1
    --long-source truncate  # section 4.1
    --long-target truncate  # section 4.1
)
[ -d data-bin/xsum ] ||
    hat preprocess xsum --root "${ROOT:?the folder of the release, see preprocess/xsum.py}" "${preprocess[@]}"

train=(
    --task document_to_text
    --seed 1  # ours
    --arch hat_bart_large  # section 4.1 says BART; the 12 layers with 16 heads of section 7 are BART-large's
    # Section 4.1. Unlike restore-file, ignored if there is a checkpoint_last.pt: a rerun resumes.
    --finetune-from-model bart.large/model.pt
    --criterion chunked_label_smoothed_cross_entropy  # fairseq's label_smoothed_cross_entropy in less memory
    --label-smoothing 0.1  # section 4.1, on the long documents
    --dropout 0.1  # section 4.1, on the long documents
    --attention-dropout 0.1  # section 4.1, on the long documents
    --optimizer adam  # section 4.1, on the long documents
    --adam-betas '(0.9, 0.999)'  # section 4.1, on the long documents
    --adam-eps 1e-08  # section 4.1, on the long documents
    --weight-decay 0.01  # section 4.1, on the long documents
    --clip-norm 0.1  # ours; fairseq's BART recipe
    --lr 3e-05  # section 4.1, on CNN/DailyMail
    --lr-scheduler polynomial_decay  # section 4.1: linear, to 0 at total-num-update
    --warmup-updates 500  # ours; fairseq's BART recipe
    --max-update 20000  # section 4.1, on CNN/DailyMail
    --total-num-update 20000
    --batch-size 4  # of one GPU; ours
    --bf16  # section 4.1, on the long documents: "mixed precision"; without bfloat16: --fp16 instead
    --save-dir checkpoints/xsum
    # checkpoint_best.pt by validation loss, as in section 4.1, and checkpoint_last.pt to resume
    --no-epoch-checkpoints
    --log-format json
    --log-file checkpoints/xsum/train.log
    --update-freq 16  # 4 documents x 16 = 64 documents an update; section 4.1, on CNN/DailyMail
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/xsum/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
