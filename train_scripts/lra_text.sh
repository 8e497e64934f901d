#!/usr/bin/env bash
# Text: reviews of films as bytes.
# paper: Liu et al. 2022, Tables 6 and 10, column Text
# needs: --root DIR, 1 GPU
#
# Long Range Arena, from scratch: the settings of Tay et al. 2021, which the paper keeps (Table 10). The criterion is
# without self-attention regularization, the row "w/o SAR" of Table 6, because Table 10 has alpha, roll and pooling of
# no task alone; with it: docs/ernie_sparse.md#long-range-arena. The models to compare with: --arch
# transformer_lra_text, --arch bigbird_lra_text. The learning rate after t updates with the warm-up w is 0.05 min(1, t
# / w) / sqrt(max(t, w)); fairseq's --lr is its highest value, 0.05 / sqrt(w).
#
# ROOT=DIR bash train_scripts/lra_text.sh [FLAGS of fairseq-train]
# Written from configs/lra_text.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/lra_text
    --max-source-tokens 1002  # <s>, 1,000 bytes, </s>
    --long-source truncate  # as published; what is cut is counted
)
[ -d data-bin/lra_text ] ||
    hat preprocess lra_text --root "${ROOT:?the folder of the release, see preprocess/lra_text.py}" "${preprocess[@]}"

train=(
    --task sequence_classification
    --seed 1  # ours; the paper: the mean of five seeds (section 4.1)
    --arch ernie_sparse_lra_text  # Table 10
    --max-positions 1002
    --criterion document_labels
    --dropout 0.1  # Table 10
    --attention-dropout 0.1  # Table 10
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # Tay et al. 2021
    --adam-eps 1e-09  # Tay et al. 2021
    --weight-decay 0.1  # Table 10
    --lr 0.0005590169943749475  # 0.05 / sqrt(8000); Table 10: 0.05
    --lr-scheduler inverse_sqrt  # Table 10
    --warmup-updates 8000  # Table 10
    --max-update 20000  # Tay et al. 2021
    --batch-size 32  # of one GPU
    --save-dir checkpoints/lra_text
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --best-checkpoint-metric accuracy  # ours
    --maximize-best-checkpoint-metric
    --save-interval-updates 2000  # ours: the best one by validation is kept
    --keep-interval-updates 1
    --log-format json
    --log-file checkpoints/lra_text/train.log
    --update-freq 1  # 32 documents x 1 = 32 documents an update; Table 10
    --distributed-world-size 1  # ours
)
fairseq-train data-bin/lra_text/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
