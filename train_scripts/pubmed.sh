#!/usr/bin/env bash
# PubMed from BART-large: 128 documents of at most 3072 tokens an update, 30,000 updates.
# Paper (Table 3): HAT 48.36 / 21.43 / 37.00, plain 48.35 / 21.43 / 36.90;
# its hours for this set are not stated (arXiv, as many updates: 2 A100, 115 hours). Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess pubmed --root DIR
#             fairseq's bart.large/ in the current directory
# Sweeps:     --update-batch-size 32 or 64 (the paper's; each with its own --save-dir)
# GPUs:       --gpus N keeps what an update sees
# Plain twin: train_scripts/pubmed.sh --no-hierarchy --save-dir checkpoints/pubmed-plain
# Resume:     the same command again
# Then:       generate_scripts/pubmed.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train pubmed "$@"
