#!/usr/bin/env bash
# Natural Questions as Poolingformer answers them (Zhang et al. 2021, Table 2).
# It needs the data and the checkpoint of train_scripts/natural_questions.sh.
# Another split or model: hat recipe predict natural_questions [FLAGS].
set -euo pipefail
hat predict checkpoints/natural_questions/checkpoint_best.pt data-bin/natural_questions \
    --split valid \
    --out results/natural_questions/valid.jsonl \
    --overwrite \
    --batch-size 4
