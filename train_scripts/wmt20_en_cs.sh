#!/usr/bin/env bash
# WMT20 English-Czech, whole documents, from scratch:
# 131,072 tokens an update (8 GPUs x 1,024 x 16), 15,000 updates.
# Paper (Table 7, BLEU): HAT 24.2 (WMT20) and 19.2 (WMT19), plain 25.0 and 18.6;
# 8 V100, about 8 hours (plain: 5). Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess wmt20_en_cs --root DIR
# GPUs:       --gpus N keeps what an update sees; --max-tokens M what one GPU takes at a time
# Plain twin: train_scripts/wmt20_en_cs.sh --no-hierarchy --save-dir checkpoints/wmt20_en_cs-plain
# Resume:     the same command again
# Then:       generate_scripts/wmt20_en_cs.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train wmt20_en_cs "$@"
