#!/usr/bin/env bash
# Natural Questions with Poolingformer's base size, for the ablations of Zhang et al. 2021, Tables 5 to 7. The paper
# trains these on one fifth of the training set (section 3.4), this recipe on all of it.
# It needs the data and the checkpoint of train_scripts/natural_questions_base.sh.
# Another split or model: hat recipe predict natural_questions_base [FLAGS].
set -euo pipefail
hat predict checkpoints/natural_questions_base/checkpoint_best.pt data-bin/natural_questions_base \
    --split valid \
    --out results/natural_questions_base/valid.jsonl \
    --overwrite \
    --batch-size 4
