#!/usr/bin/env bash
# Summaries of the 20 AMI test meetings into results/ami/generate-test.txt.
# Paper (Table 6): HAT 52.27 / 20.15 / 50.57. Ours, from scratch: 47.21 / 16.99 / 45.85.
# Then: hat join --generated results/ami/generate-test.txt --ids data-bin/ami/text/test.ids --out results/ami/test.jsonl
#       hat score rouge --hypotheses results/ami/test.jsonl --references data-bin/ami/text/test.documents.jsonl
exec "${PYTHON:-python3}" "$(dirname "$0")/../hat_fairseq/recipe.py" generate ami "$@"
