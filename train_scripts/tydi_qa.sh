#!/usr/bin/env bash
# TyDi QA: answers in pages, in eleven languages.
# paper: Zhang et al. 2021, Table 3, row Poolingformer
# needs: --root DIR, xlmr.large, 8 GPUs
#
# Section 3.2: Poolingformer. The paper does not print weight decay, dropout and Adam's betas; ours are RoBERTa's (Liu
# et al. 2019, Table 10).
#
# ROOT=DIR bash train_scripts/tydi_qa.sh [FLAGS of fairseq-train]
# Written from configs/tydi_qa.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/tydi_qa
    --bpe sentencepiece  # that of the weights
    --bpe-dir xlmr.large  # where sentencepiece.bpe.model is
    --max-source-tokens 4096  # section 3.2: windows of 4,096 tokens
    --long-source chunk
    --window-overlap 2528  # section 3.2: a window begins 1,568 tokens after the one before
    --negative-windows 0.5  # section 3.2
)
[ -d data-bin/tydi_qa ] ||
    hat preprocess tydi_qa --root "${ROOT:?the folder of the release, see preprocess/tydi_qa.py}" "${preprocess[@]}"

train=(
    --task document_question_answering
    --max-positions 4096
    --seed 1  # ours
    --arch poolingformer_large  # section 3.2: windows of 128 and 512 tokens, pooled from the 15th to the 20th layer
    --finetune-from-model xlmr.large/model.pt  # section 3.2
    --criterion document_answers
    --dropout 0.1  # ours; RoBERTa's
    --attention-dropout 0.1  # ours; RoBERTa's
    --optimizer adam  # section 3.2
    --adam-betas '(0.9, 0.98)'  # ours; RoBERTa's
    --adam-eps 1e-06  # ours; RoBERTa's
    --weight-decay 0.1  # ours; RoBERTa's
    --lr 2e-05  # section 3.2
    --lr-scheduler polynomial_decay  # section 3.2: linear, to 0 at total-num-update
    --warmup-updates 800  # section 3.2: 0.1 of the updates
    --max-update 8000  # section 3.2 has 2 epochs: about 2 x the lines of `train` in the table of hat preprocess / 64
    --total-num-update 8000
    --batch-size 1  # of one GPU; ours
    --bf16  # ours; section 3.2 has apex, on V100: --fp16 instead
    --checkpoint-activations  # section 3.2: "Gradient Checkpointing"
    --save-dir checkpoints/tydi_qa
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric loss  # ours
    --log-format json
    --log-file checkpoints/tydi_qa/train.log
    --update-freq 8  # 8 GPUs x 1 document x 8 = 64 documents an update; section 3.2
    --distributed-world-size 8  # section 3.2
)
fairseq-train data-bin/tydi_qa/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
