#!/usr/bin/env bash
# Hierarchical Attention Transformer from RoBERTa-base on long pages of C4: 128 rows of 4,096 tokens an update, 50,000
# updates.
# Paper (Chalkidis et al. 2022, model card): validation loss 1.5368 after 50,000 updates, on 8 TPU cores; hours not
# stated. Ours: not run yet.
# First:      python hat_fairseq/recipe.py preprocess hierarchical_transformer_pretraining --root DIR
#             fairseq's roberta.base/ in the current directory
# GPUs:       --gpus N keeps what an update sees; --batch-size what one GPU takes at a time
# Resume:     the same command again
# Then:       train_scripts/imdb.sh and others with --segment-positions=null --layer-norm-eps=null \
#               --attend-segment-padding=null --pool-padded-segments=null --max-segments 72 \
#               --finetune-from-model checkpoints/hierarchical_transformer_pretraining/checkpoint_best.pt
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" train hierarchical_transformer_pretraining "$@"
