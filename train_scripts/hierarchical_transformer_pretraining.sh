#!/usr/bin/env bash
# Pre-training of the Hierarchical Attention Transformer.
# paper: Chalkidis et al. 2022, model card of hierarchical-transformer-base-4096
# needs: --root DIR, roberta.base, 8 GPUs
#
# On long pages of C4, from RoBERTa-base, with the training settings in the model card; mask and weight decay are
# those of the authors' script. 32 segments of at most 128 tokens begin at the markers that preprocessing wrote: whole
# sentences, packed.
#
# ROOT=DIR bash train_scripts/hierarchical_transformer_pretraining.sh [FLAGS of fairseq-train]
# Written from configs/hierarchical_transformer_pretraining.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/hierarchical_transformer_pretraining
    --bpe gpt2  # RoBERTa's
    --segments packed
    --max-segments 32
    --max-source-tokens 4096
)
[ -d data-bin/hierarchical_transformer_pretraining ] ||
    hat preprocess c4 --root "${ROOT:?the folder of the release, see preprocess/c4.py}" "${preprocess[@]}"

train=(
    --task masked_document_lm
    --seed 42  # the card's; fairseq draws other numbers from it
    --arch hierarchical_transformer_base_4096  # the card: "supports sequences of length up to 4,096"
    --finetune-from-model roberta.base/model.pt  # the card: "warm-started from roberta-base checkpoint"
    --segment-by marker
    --tokens-per-sample 4096
    --sample-break-mode eos  # a sample is a row, as preprocessing has filled it
    --criterion masked_lm  # the card: MLM; 15 % of the tokens, never sentence markers
    --optimizer adam  # the card
    --adam-betas '(0.9, 0.999)'  # the card
    --adam-eps 1e-08  # the card
    --weight-decay 0.01  # the authors' script
    --lr 1e-04  # the card
    --lr-scheduler polynomial_decay  # the card: linear, to 0 at total-num-update
    --warmup-updates 5000  # the card: 0.1 of the updates
    --max-update 50000  # the card
    --total-num-update 50000
    --batch-size 2  # of one GPU; the card
    --bf16  # ours
    --save-dir checkpoints/hierarchical_transformer_pretraining
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/hierarchical_transformer_pretraining/train.log
    --update-freq 8  # 8 GPUs x 2 documents x 8 = 128 documents an update; the card
    --distributed-world-size 8  # the card: 8 TPU cores
)
fairseq-train data-bin/hierarchical_transformer_pretraining/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
