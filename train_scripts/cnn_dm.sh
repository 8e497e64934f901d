#!/usr/bin/env bash
# CNN/DailyMail from BART-large: 64 documents of at most 1024 tokens an update, 20,000 updates.
# Paper (Table 4): HAT 44.48 / 21.31 / 41.52, plain 44.45 / 21.27 / 41.51;
# its hardware and hours for this set are not stated. Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess cnn_dm --root DIR
#             fairseq's bart.large/ in the current directory
# Sweeps:     --update-batch-size 32; --max-update 30000 (the paper's; each with its own --save-dir)
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/cnn_dm.sh --no-hierarchy --save-dir checkpoints/cnn_dm-plain
# Resume:     the same command again
# Then:       generate_scripts/cnn_dm.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train cnn_dm "$@"
