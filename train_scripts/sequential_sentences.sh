#!/usr/bin/env bash
# A label for each sentence of your documents, with a Hierarchical Attention Transformer: 32 documents an update.
# Paper: none, the data are your own. Ours: not run yet, meant for one GPU.
# First:      raw/sequential_sentences/train.jsonl, valid.jsonl, test.jsonl
#             python hat_fairseq/recipe.py preprocess sequential_sentences
#             hierarchical-transformer-base-4096/model.pt: hat import kiddothe2b HF_DIR --out FILE
# GPUs:       --gpus N keeps what an update sees
# Resume:     the same command again
# Then:       predict_scripts/sequential_sentences.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train sequential_sentences "$@"
