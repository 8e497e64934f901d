#!/usr/bin/env bash
# MultiNLI with HAT's encoder (Rohde et al. 2021, section 7, Table 8); settings of RoBERTa on MNLI, as fairseq's example
# for GLUE has them.
# It needs the data and the checkpoint of train_scripts/mnli.sh.
# Another split or model: hat recipe predict mnli [FLAGS].
set -euo pipefail
hat predict checkpoints/mnli/checkpoint_best.pt data-bin/mnli \
    --split valid \
    --out results/mnli/valid.jsonl \
    --overwrite \
    --batch-size 32
hat score classification results/mnli/valid.jsonl \
    --references data-bin/mnli/text/valid.jsonl \
    --out results/mnli/valid.score.json
