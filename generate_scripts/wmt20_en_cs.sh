#!/usr/bin/env bash
# WMT20 English-Czech, whole documents.
# paper: Rohde et al. 2021, Table 7, row HAT, En-Cs
# needs: --root DIR, 8 GPUs; the paper: 8 hours on 8 V100, 5 without hierarchy
#
# Section 4.2, from random weights, with a joined BPE of 40,000 codes, which is the default. The baseline, row
# Transformer: --no-hierarchy. The paper tuned these settings by the BLEU of the validation part and does not say
# which checkpoint of a training it takes; ours is the best by validation loss, as for its summaries. By BLEU:
# --eval-bleu --best-checkpoint-metric bleu --maximize-best-checkpoint-metric.
#
# ROOT=DIR bash generate_scripts/wmt20_en_cs.sh
# Written from configs/wmt20_en_cs.yaml.
set -euo pipefail
preprocess=(
    --out data-bin/wmt20_en_cs
    --source-tokenizer moses  # section 4.2
    --target-tokenizer moses  # section 4.2
    --max-source-tokens 512  # section 4.2
    --max-target-tokens 512  # section 4.2
    --max-chunk-tokens 1024  # ours; a longer segment is a chunk of its own, cut to the model's positions and counted
    --long-source chunk  # section 4.2: chunks that end where segments end
)
[ -d data-bin/wmt20_en_cs ] ||
    hat preprocess wmt20_en_cs --root "${ROOT:?the folder of the release, see preprocess/wmt20_en_cs.py}" "${preprocess[@]}"

generate=(
    --split test  # WMT20, whose validation is WMT18; WMT19: --split test1
    --out results/wmt20_en_cs/test.jsonl
    --overwrite
    --beam 4  # section 4.2
    --max-len-b 1023  # section 4.2: until </s>; only the model's 1,024 positions end a translation
    --max-tokens 8192
)
hat generate checkpoints/wmt20_en_cs/checkpoint_best.pt \
    data-bin/wmt20_en_cs "${generate[@]}"
# Table 7: sacrebleu's
hat score bleu results/wmt20_en_cs/test.jsonl \
    --references data-bin/wmt20_en_cs/text/test.jsonl \
    --out results/wmt20_en_cs/test.score.json
