#!/usr/bin/env bash
# arXiv: abstracts of papers, 16,384 tokens.
# paper: Zhang et al. 2021, Table 4, row Poolingformer 16k
# needs: --root DIR, bart.large, 8 GPUs
#
# Section 3.2, "Summarization". What the paper does not print, regularization and the lengths of summaries, is that of
# Rohde et al. 2021, section 4.1 (recipe arxiv).
#
# ROOT=DIR bash train_scripts/poolingformer_arxiv_16k.sh [FLAGS of fairseq-train]
# Written from configs/poolingformer_arxiv_16k.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/poolingformer_arxiv_16k
    --bpe gpt2  # BART's
    --max-source-tokens 16384  # Table 4
    --max-target-tokens 512  # ours; that of recipe arxiv
    --long-source truncate  # ours; that of recipe arxiv
    --long-target truncate  # ours; that of recipe arxiv
)
[ -d data-bin/poolingformer_arxiv_16k ] ||
    hat preprocess arxiv --root "${ROOT:?the folder of the release, see preprocess/arxiv.py}" "${preprocess[@]}"

train=(
    --task document_to_text
    --max-source-positions 16384
    --seed 1  # ours
    # section 3.2: windows of 128 and 512 tokens, pooled from the 6th to the 11th layer; the first token is global
    --arch poolingformer_bart_large
    # Section 3.2. Unlike restore-file, ignored if there is a checkpoint_last.pt: a rerun resumes.
    --finetune-from-model bart.large/model.pt
    --criterion chunked_label_smoothed_cross_entropy  # fairseq's label_smoothed_cross_entropy in less memory
    --label-smoothing 0.1  # ours; that of recipe arxiv
    --dropout 0.1  # ours; that of recipe arxiv
    --attention-dropout 0.1  # ours; that of recipe arxiv
    --optimizer adam  # section 3.2
    --adam-betas '(0.9, 0.999)'  # ours; that of recipe arxiv
    --adam-eps 1e-08  # ours; that of recipe arxiv
    --weight-decay 0.01  # ours; that of recipe arxiv
    --clip-norm 0.1  # ours; fairseq's BART recipe
    --lr 2e-04  # section 3.2
    --lr-scheduler polynomial_decay  # section 3.2: linear, to 0 at total-num-update
    --warmup-updates 1000  # section 3.2
    --max-update 15862  # section 3.2: 10 epochs of 203,037 articles
    --total-num-update 15862
    --batch-size 1  # of one GPU; ours
    --bf16  # ours; section 3.2 has apex, on V100: --fp16 instead
    --checkpoint-activations  # section 3.2: "Gradient Checkpointing"
    --save-dir checkpoints/poolingformer_arxiv_16k
    --no-epoch-checkpoints  # checkpoint_best.pt by validation, and checkpoint_last.pt to resume
    --log-format json
    --log-file checkpoints/poolingformer_arxiv_16k/train.log
    --update-freq 16  # 8 GPUs x 1 document x 16 = 128 documents an update; section 3.2
    --distributed-world-size 8  # section 3.2
)
fairseq-train data-bin/poolingformer_arxiv_16k/bin --user-dir "$(hat user-dir)" "${train[@]}" "$@"
