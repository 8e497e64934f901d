#!/usr/bin/env bash
# AMI meetings, 97/20/20: a small HAT from scratch on a CPU.
# Paper (Table 6, from BART by way of CNN/DailyMail): HAT 52.27 / 20.15 / 50.57, plain 52.06 / 19.27 / 50.02; its
# hardware and hours are not stated. Ours, from scratch: HAT 46.92 / 16.80 / 45.47, plain (version 0.2.0) 45.98 / 15.62 /
# 44.68 (one seed, rouge-score), 4 to 7 minutes each on 2 CPU cores.
# First:      python hat_fairseq/recipe.py preprocess ami_small
# Plain twin: train_scripts/ami_small.sh --no-hierarchy --save-dir checkpoints/ami_small-plain
# Then:       generate_scripts/ami_small.sh
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train ami_small "$@"
