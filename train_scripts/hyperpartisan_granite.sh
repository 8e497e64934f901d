#!/usr/bin/env bash
# Hyperpartisan news: a Hierarchical Attention Transformer from a small public encoder, on a CPU.
# Paper: nothing on this split. Ours: benchmarks/README.md; 23 minutes on one CPU core with bfloat16.
# First: python hat_fairseq/recipe.py preprocess hyperpartisan_granite --root DIR
#        the weights: benchmarks/granite.py, and then hat import roberta granite-hf --out granite/model.pt
# Then:  predict_scripts/hyperpartisan_granite.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train hyperpartisan_granite "$@"
