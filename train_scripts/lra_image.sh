#!/usr/bin/env bash
# Image: the class of a picture, pixel by pixel.
# paper: Liu et al. 2022, Tables 6 and 10, column Image
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_image, --arch bigbird_lra_image. 200 epochs, of which one is the warm-up; the learning rate falls to
# 0 by a cosine.
#
# ROOT=DIR bash train_scripts/lra_image.sh [FLAGS of fairseq-train]
# Written from configs/lra_image.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_image
    --max-source-tokens 1026  # <s>, 1,024 pixels, </s>
)
[ -d data-bin/lra_image ] ||
    hat preprocess lra_image --root "${ROOT:?the folder of the release, see preprocess/lra_image.py}" "${preprocess[@]}"

train=(
    --task sequence_classification
    --seed 1  # ours; the paper: the mean of five seeds (section 4.1)
    --arch ernie_sparse_lra_image  # Table 10
    --max-positions 1026
    --criterion document_labels
    --dropout 0.3  # Table 10
    --attention-dropout 0.2  # Table 10
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # Tay et al. 2021
    --adam-eps 1e-09  # Tay et al. 2021
    --lr 5e-04  # Table 10
    --lr-scheduler cosine  # Table 10
    --lr-period-updates 35000
    --warmup-updates 175  # Table 10
    --max-update 35000  # Tay et al. 2021: 200 epochs of 175 batches
    --batch-size 256  # of one GPU
    --save-dir checkpoints/lra_image
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --log-format json
    --log-file checkpoints/lra_image/train.log
    --update-freq 1  # 256 documents x 1 = 256 documents an update; Table 10
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/lra_image/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
