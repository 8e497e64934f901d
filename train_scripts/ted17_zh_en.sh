#!/usr/bin/env bash
# TED17 Chinese-English, whole documents, from scratch:
# 16,384 tokens an update (8,192 x 2), 8,000 updates.
# Paper (Table 7, BLEU): HAT 24.0 (TED17) and 22.9 (TED16), plain 23.2 and 23.1;
# 1 V100, about 1.5 hours (plain: 1). Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess ted17_zh_en --root DIR
# GPUs:       --gpus N keeps what an update sees; --max-tokens M what one GPU takes at a time
# Plain twin: train_scripts/ted17_zh_en.sh --no-hierarchy --save-dir checkpoints/ted17_zh_en-plain
# Resume:     the same command again
# Then:       generate_scripts/ted17_zh_en.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train ted17_zh_en "$@"
