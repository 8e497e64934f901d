#!/usr/bin/env bash
# RACE with HAT's encoder from RoBERTa-base: 16 questions an update, 21,968 updates (4 epochs), the first one without
# dropout (--dropout-schedule), as in the paper.
# Paper (Table 8, accuracy): HAT 67.3, RoBERTa-base 65.6; its hardware and hours are not stated, its other settings
# neither (here RoBERTa's). Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess race --root DIR
#             fairseq's roberta.base/ in the current directory, or
#             --finetune-from-model checkpoints/roberta_pretraining/checkpoint_best.pt
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/race.sh --no-hierarchy --save-dir checkpoints/race-plain
# Resume:     the same command again
# Then:       predict_scripts/race.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train race "$@"
