#!/usr/bin/env bash
# SAMSum: summaries of chats.
# paper: Rohde et al. 2021, Table 5, row HAT-CNNDM
# needs: --root DIR, recipe cnn_dm, 1 GPU
#
# Section 4.1, "Conversational datasets": turns are sentences, and roles have new segment embeddings; all other
# weights are those of the HAT trained on CNN/DailyMail. Batches, steps, lengths, generation and hardware are not in
# the paper. The baseline, row Transformer-CNNDM: docs/recipes.md.
#
# ROOT=DIR bash train_scripts/samsum.sh [FLAGS of fairseq-train]
# Written from configs/samsum.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/samsum
    --bpe gpt2  # section 4.1, on the long documents
    --max-source-tokens 1024  # ours; those of CNN/DailyMail, whose model it starts from
    --max-target-tokens 256  # ours; those of CNN/DailyMail, whose model it starts from
    --long-source truncate  # section 4.1, on the long documents
    --long-target truncate  # section 4.1, on the long documents
)
[ -d data-bin/samsum ] ||
    hat preprocess samsum --root "${ROOT:?the folder of the release, see preprocess/samsum.py}" "${preprocess[@]}"

train=(
    --task document_to_text
    --role-stream role  # section 4.1: a segment embedding for each role
    --seed 1  # ours
    --arch hat_bart_large  # section 4.1: that of the model trained on CNN/DailyMail
    # Section 4.1. Unlike restore-file, ignored if there is a checkpoint_last.pt: a rerun resumes.
    --finetune-from-model checkpoints/cnn_dm/checkpoint_best.pt
    --criterion chunked_label_smoothed_cross_entropy  # fairseq's label_smoothed_cross_entropy in less memory
    --label-smoothing 0.1  # section 4.1, on the long documents
    --dropout 0.1  # section 4.1, on the long documents
    --attention-dropout 0.1  # section 4.1, on the long documents
    --optimizer adam  # section 4.1, on the long documents
    --adam-betas '(0.9, 0.999)'  # section 4.1, on the long documents
    --adam-eps 1e-08  # section 4.1, on the long documents
    --weight-decay 0.01  # section 4.1, on the long documents
    --clip-norm 0.1  # ours; fairseq's BART recipe
    --lr 3e-05  # ours; that of the paper's other summaries
    --lr-scheduler polynomial_decay  # section 4.1, on the long documents: linear, to 0 at total-num-update
    --warmup-updates 90  # ours; 3 %, as for the paper's long documents
    --max-update 3000  # ours; 6.5 epochs
    --total-num-update 3000
    --batch-size 8  # of one GPU; ours
    --bf16  # section 4.1, on the long documents: "mixed precision"; without bfloat16: --fp16 instead
    --save-dir checkpoints/samsum
    --no-epoch-checkpoints  # checkpoint_best.pt by validation loss, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/samsum/train.log
    --update-freq 4  # 8 documents x 4 = 32 documents an update; ours
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/samsum/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
