#!/usr/bin/env bash
# CNN/DailyMail from BART-large: 64 documents of 1024 tokens a step, 20,000 steps.
# Paper (Table 4): HAT 44.48 / 21.31 / 41.52, plain 44.45 / 21.27 / 41.51; its hardware and hours for this set are not
# stated (arXiv, 3072 tokens: 2 A100, 115 hours). Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess cnn_dm --root DIR; fairseq's bart.large/ in the current directory
# N GPUs:     --update-freq 16/N keeps the 64 documents
# Plain twin: train_scripts/cnn_dm.sh --no-hierarchy --save-dir checkpoints/cnn_dm-plain
# Resume:     the same command again
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train cnn_dm "$@"
