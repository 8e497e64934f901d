#!/usr/bin/env bash
# Retrieval: does one paper cite the other?
# paper: Liu et al. 2022, Tables 6 and 10, column Retrieval
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_retrieval, --arch bigbird_lra_retrieval. The learning rate after t updates with the warm-up w is
# 0.05 min(1, t / w) / sqrt(max(t, w)); fairseq's --lr is its highest value, 0.05 / sqrt(w).
#
# ROOT=DIR bash train_scripts/lra_retrieval.sh [FLAGS of fairseq-train]
# Written from configs/lra_retrieval.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_retrieval
    --max-source-tokens 4002  # <s>, 4,000 bytes, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_retrieval ] ||
    hat preprocess lra_retrieval --root "${ROOT:?the folder of the release, see preprocess/lra_retrieval.py}" "${preprocess[@]}"

train=(
    --task sequence_classification
    --seed 1  # ours; the paper: the mean of five seeds (section 4.1)
    --arch ernie_sparse_lra_retrieval  # Table 10
    --max-positions 4002
    --criterion document_labels
    --dropout 0.1  # Table 10
    --attention-dropout 0.1  # Table 10
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # Tay et al. 2021
    --adam-eps 1e-09  # Tay et al. 2021
    --weight-decay 0.1  # Table 10
    --lr 0.0005590169943749475  # 0.05 / sqrt(8000); Table 10: 0.05
    --lr-scheduler inverse_sqrt  # Table 10
    --warmup-updates 8000  # Table 10; the training ends before
    --max-update 5000  # Tay et al. 2021
    --batch-size 32  # of one GPU
    --save-dir checkpoints/lra_retrieval
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --save-interval-updates 500  # ours: the best one by validation is kept
    --keep-interval-updates 1
    --log-format json
    --log-file checkpoints/lra_retrieval/train.log
    --update-freq 1  # 32 documents x 1 = 32 documents an update; Table 10
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/lra_retrieval/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
