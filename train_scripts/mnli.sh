#!/usr/bin/env bash
# MultiNLI with HAT's encoder from RoBERTa-base: 32 pairs an update, 123,873 updates (10 epochs).
# Paper (Table 8, accuracy on dev_matched): HAT 84.7, RoBERTa-base 84.7; its hardware and hours are not stated, its
# settings neither (here RoBERTa's). Ours: not run yet, meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess mnli --root DIR
#             fairseq's roberta.base/ in the current directory, or
#             --finetune-from-model checkpoints/roberta_pretraining/checkpoint_best.pt
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/mnli.sh --no-hierarchy --save-dir checkpoints/mnli-plain
# Resume:     the same command again
# Then:       predict_scripts/mnli.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train mnli "$@"
