#!/usr/bin/env bash
# IMDB with a Hierarchical Attention Transformer: 32 reviews an update, 14,080 updates (20 epochs).
# Paper: nothing on this set; the settings are those of its authors' scripts for classification. Ours: not run yet,
# meant for one GPU.
# First:      python hat_fairseq/recipe.py preprocess imdb --root aclImdb
#             hierarchical-transformer-base-4096/model.pt: hat import kiddothe2b HF_DIR --out FILE
# GPUs:       --gpus N keeps what an update sees
# Resume:     the same command again
# Then:       predict_scripts/imdb.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train imdb "$@"
