#!/usr/bin/env bash
# Pathfinder: are two dots the ends of one curve?
# paper: Liu et al. 2022, Tables 6 and 10, column Pathfinder
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_pathfinder, --arch bigbird_lra_pathfinder. 200 epochs, of which one is the warm-up; the learning
# rate falls to 0 by a cosine.
#
# ROOT=DIR bash train_scripts/lra_pathfinder.sh [FLAGS of fairseq-train]
# Written from configs/lra_pathfinder.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_pathfinder
    --max-source-tokens 1026  # <s>, 1,024 pixels, </s>
)
[ -d data-bin/lra_pathfinder ] ||
    hat preprocess lra_pathfinder --root "${ROOT:?the folder of the release, see preprocess/lra_pathfinder.py}" "${preprocess[@]}"

train=(
    --task sequence_classification
    --seed 1  # ours; the paper: the mean of five seeds (section 4.1)
    --arch ernie_sparse_lra_pathfinder  # Table 10
    --max-positions 1026
    --criterion document_labels
    --dropout 0.2  # Table 10
    --attention-dropout 0.1  # Table 10
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # Tay et al. 2021
    --adam-eps 1e-09  # Tay et al. 2021
    --lr 1e-03  # Table 10
    --lr-scheduler cosine  # Table 10
    --lr-period-updates 62400
    --warmup-updates 312  # Table 10
    --max-update 62400  # Tay et al. 2021: 200 epochs of 312 batches
    --batch-size 512  # of one GPU
    --save-dir checkpoints/lra_pathfinder
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --log-format json
    --log-file checkpoints/lra_pathfinder/train.log
    --update-freq 1  # 512 documents x 1 = 512 documents an update; Table 10
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/lra_pathfinder/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
