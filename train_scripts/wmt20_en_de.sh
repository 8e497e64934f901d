#!/usr/bin/env bash
# WMT20 English-German, whole documents, from scratch:
# 131,072 tokens an update (8 GPUs x 1,024 x 16), 50,000 updates.
# Paper (Table 7, BLEU): HAT 27.4 (WMT20) and 34.5 (WMT19), plain 27.1 and 32.5;
# 8 V100, about 25 hours (plain: 17). Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess wmt20_en_de --root DIR
# GPUs:       --gpus N keeps what an update sees; --max-tokens M what one GPU takes at a time
# Plain twin: train_scripts/wmt20_en_de.sh --no-hierarchy --save-dir checkpoints/wmt20_en_de-plain
# Resume:     the same command again
# Then:       generate_scripts/wmt20_en_de.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train wmt20_en_de "$@"
