#!/usr/bin/env bash
# AMI meetings from the HAT of CNN/DailyMail: 8 meetings an update, 400 updates (not in the paper).
# Paper (Table 6): HAT 52.27 / 20.15 / 50.57, plain 52.06 / 19.27 / 50.02;
# its hardware and hours for this set are not stated. Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess ami
#             train_scripts/cnn_dm.sh
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/ami.sh --no-hierarchy --save-dir checkpoints/ami-plain \
#               --finetune-from-model checkpoints/cnn_dm-plain/checkpoint_best.pt
# Resume:     the same command again
# Then:       generate_scripts/ami.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train ami "$@"
