#!/usr/bin/env bash
# Pre-training of ERNIE-Sparse.
# paper: Liu et al. 2022, Tables 2 and 8
# needs: documents of your own, roberta.base, 8 GPUs
#
# The other recipes ernie_sparse_... may start from its result. Section 4.2.1, A.1 and Table 8. Alpha is 0 there, so
# the criterion is masked_lm alone. The paper validates on 5 % of the training data (A.1.1): the validation part of
# your own folder. Documents of more than 4,096 tokens are divided, as in A.1.2; section 4.2.1 truncates them.
#
# bash train_scripts/ernie_sparse_pretraining.sh [FLAGS of fairseq-train]
# Written from configs/ernie_sparse_pretraining.yaml.
set -euo pipefail
preprocess=(
    # A folder of your own: Wikipedia, BookCorpus, Realnews and Stories are not available as one release.
    --kind mlm
    --out data-bin/ernie_sparse_pretraining
    --splitter punctuation
    --bpe gpt2
    --segments none  # the model represents blocks of tokens by itself
    --max-source-tokens 4096  # Table 8
)
[ -d data-bin/ernie_sparse_pretraining ] ||
    hat preprocess raw/ernie_sparse_pretraining "${preprocess[@]}"

train=(
    --task masked_document_lm
    --seed 1  # ours
    --arch ernie_sparse_base
    --finetune-from-model roberta.base/model.pt  # A.1.2
    --tokens-per-sample 4096  # Table 8
    --sample-break-mode eos  # a sample is a row, as preprocessing has filled it
    --criterion masked_lm  # A.1.2: 15 % of the tokens; never sentence markers
    --dropout 0.1  # Table 8
    --attention-dropout 0.1  # Table 8
    --optimizer adam
    --adam-betas '(0.9, 0.98)'  # ours; RoBERTa's, Liu et al. 2019, Table 9
    --adam-eps 1e-06  # ours; RoBERTa's, Liu et al. 2019, Table 9
    --weight-decay 0.1  # Table 8
    --lr 3e-05  # Table 8
    --lr-scheduler polynomial_decay  # A.1.2: polynomial; here linear, to 0 at total-num-update
    --warmup-updates 10000  # Table 8
    --max-update 1000000  # Table 8
    --total-num-update 1000000
    --batch-size 2  # of one GPU; ours
    --bf16  # ours
    --save-dir checkpoints/ernie_sparse_pretraining
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/ernie_sparse_pretraining/train.log
    --update-freq 16  # 8 GPUs x 2 documents x 16 = 256 documents an update; Table 8
    --distributed-world-size 8  # ours
)
fairseq-train data-bin/ernie_sparse_pretraining/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
