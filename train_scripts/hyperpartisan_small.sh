#!/usr/bin/env bash
# Hyperpartisan news: a small Hierarchical Attention Transformer from scratch, on a CPU.
# Paper: nothing on this split. Ours: benchmarks/README.md; minutes on one CPU core.
# First: python hat_fairseq/recipe.py preprocess hyperpartisan_small --root DIR
# Then:  predict_scripts/hyperpartisan_small.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train hyperpartisan_small "$@"
