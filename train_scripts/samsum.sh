#!/usr/bin/env bash
# SAMSum from the HAT of CNN/DailyMail: 32 conversations an update, 3,000 updates (not in the paper).
# Paper (Table 5): HAT 53.01 / 28.27 / 48.84, plain 53.00 / 28.03 / 48.59;
# its hardware and hours for this set are not stated. Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess samsum --root DIR
#             train_scripts/cnn_dm.sh
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/samsum.sh --no-hierarchy --save-dir checkpoints/samsum-plain \
#               --finetune-from-model checkpoints/cnn_dm-plain/checkpoint_best.pt
# Resume:     the same command again
# Then:       generate_scripts/samsum.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train samsum "$@"
