#!/usr/bin/env bash
# ICSI meetings from the HAT of CNN/DailyMail: 8 meetings an update, 400 updates (not in the paper).
# Paper (Table 6): HAT 43.98 / 10.83 / 41.36, plain 43.77 / 11.65 / 41.64;
# its hardware and hours for this set are not stated. Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess icsi
#             train_scripts/cnn_dm.sh
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/icsi.sh --no-hierarchy --save-dir checkpoints/icsi-plain \
#               --finetune-from-model checkpoints/cnn_dm-plain/checkpoint_best.pt
# Resume:     the same command again
# Then:       generate_scripts/icsi.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train icsi "$@"
