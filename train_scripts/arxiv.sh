#!/usr/bin/env bash
# arXiv from BART-large: 128 documents of at most 3072 tokens an update, 30,000 updates.
# Paper (Table 3): HAT 46.68 / 19.07 / 42.17, plain 46.54 / 18.82 / 42.00;
# 2 A100, 115 hours (plain: 100) without validation. Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess arxiv --root DIR
#             fairseq's bart.large/ in the current directory
# Sweeps:     --update-batch-size 32 or 64 (the paper's; each with its own --save-dir)
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/arxiv.sh --no-hierarchy --save-dir checkpoints/arxiv-plain
# Resume:     the same command again
# Then:       generate_scripts/arxiv.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train arxiv "$@"
