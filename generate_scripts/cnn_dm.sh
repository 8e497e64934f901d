#!/usr/bin/env bash
# Summaries of the 11,490 CNN/DailyMail test articles into results/cnn_dm/generate-test.txt.
# Paper (Table 4, scored with files2rouge): HAT 44.48 / 21.31 / 41.52; hardware and time not stated. Ours: not run yet.
# Then: hat join --generated results/cnn_dm/generate-test.txt --ids data-bin/cnn_dm/text/test.ids \
#         --out results/cnn_dm/test.jsonl
#       hat score rouge --like files2rouge --backend perl --hypotheses results/cnn_dm/test.jsonl \
#         --references data-bin/cnn_dm/text/test.documents.jsonl
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate cnn_dm "$@"
