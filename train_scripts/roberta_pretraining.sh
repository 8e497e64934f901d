#!/usr/bin/env bash
# Pre-training of HAT's encoder on text of your own: 8,192 rows of 512 tokens an update, 500,000 updates.
# Paper (section 7): "faster to a better optimum with lower complexity than RoBERTa with the same hyperparameters", no
# figure; its hardware and hours are not stated (RoBERTa: 1,024 V100, about a day). Ours: not run yet.
# First:      raw/roberta_pretraining/train.jsonl and valid.jsonl, a document a line: {"text": ...}
#             python hat_fairseq/recipe.py preprocess roberta_pretraining
# GPUs:       --gpus N keeps what an update sees; --batch-size what one GPU takes at a time
# Sentences:  --criterion masked_lm_from_sentences --sentence-weight 1 (section 9 of the paper)
# Plain twin: train_scripts/roberta_pretraining.sh --no-hierarchy --save-dir checkpoints/roberta_pretraining-plain
# Resume:     the same command again
# Then:       train_scripts/race.sh --finetune-from-model checkpoints/roberta_pretraining/checkpoint_best.pt
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train roberta_pretraining "$@"
