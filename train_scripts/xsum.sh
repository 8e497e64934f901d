#!/usr/bin/env bash
# XSum from BART-large: 64 documents of at most 1024 tokens an update, 20,000 updates.
# Paper (Table 4): HAT 45.92 / 22.79 / 37.84, plain 45.26 / 22.19 / 37.04;
# its hardware and hours for this set are not stated. Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess xsum --root DIR
#             fairseq's bart.large/ in the current directory
# Sweeps:     --update-batch-size 32; --max-update 30000 (the paper's; each with its own --save-dir)
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/xsum.sh --no-hierarchy --save-dir checkpoints/xsum-plain
# Resume:     the same command again
# Then:       generate_scripts/xsum.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train xsum "$@"
