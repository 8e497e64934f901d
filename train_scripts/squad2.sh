#!/usr/bin/env bash
# SQuAD 2.0 with HAT's encoder from RoBERTa-base: 48 questions an update, 5,430 updates (2 epochs).
# Paper (Table 8, F1 on the development part): HAT 79.4, RoBERTa-base 79.7; its hardware and hours are not stated, its
# settings neither (here RoBERTa's). Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess squad2 --root DIR
#             fairseq's roberta.base/ in the current directory, or
#             --finetune-from-model checkpoints/roberta_pretraining/checkpoint_best.pt
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/squad2.sh --no-hierarchy --save-dir checkpoints/squad2-plain
# Resume:     the same command again
# Then:       predict_scripts/squad2.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train squad2 "$@"
