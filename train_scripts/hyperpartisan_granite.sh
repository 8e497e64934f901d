#!/usr/bin/env bash
# Hyperpartisan news: a small Hierarchical Attention Transformer from scratch, on a CPU.
# Paper: nothing on this set. Ours: not run yet, meant for minutes on 2 CPU cores.
# First: python hat_fairseq/recipe.py preprocess hyperpartisan_granite --root DIR
# Then:  predict_scripts/hyperpartisan_granite.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train hyperpartisan_granite "$@"
