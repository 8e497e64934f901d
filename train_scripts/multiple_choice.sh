#!/usr/bin/env bash
# The right choice after a long text of yours, with a Hierarchical Attention Transformer: 32 questions an update.
# Paper: none, the data are your own. Ours: not run yet, meant for one GPU.
# First:      raw/multiple_choice/train.jsonl, valid.jsonl, test.jsonl
#             python hat_fairseq/recipe.py preprocess multiple_choice
#             hierarchical-transformer-base-4096/model.pt: hat import kiddothe2b HF_DIR --out FILE
# GPUs:       --gpus N keeps what an update sees
# Resume:     the same command again
# Then:       predict_scripts/multiple_choice.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train multiple_choice "$@"
