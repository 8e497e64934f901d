#!/usr/bin/env bash
# Questions on real meetings, and the passages that answer them: `hat demo ask` runs this.
# Everything goes to ami_questions in data-bin/, checkpoints/ and results/ of the current folder, and to minilm/; data and
# training of an earlier run are kept. What the commands print is in results/ami_questions/demo.log.
set -euo pipefail
data=data-bin/ami_questions results=results/ami_questions checkpoints=checkpoints/ami_questions
log=$results/demo.log
mkdir -p "$results"
: > "$log"
# shellcheck source=examples/steps.sh
. "$(dirname "$0")/steps.sh"

step "questions 1/5: preprocess 137 meetings with 847 questions, and the turns that answer each"
if [ ! -e minilm/model.pt ]; then
  quietly hat import minilm --out minilm/model.pt
fi
if [ -e "$data/manifest.json" ]; then
  echo "$data is there already"
else
  quietly hat recipe preprocess ami_questions
  say_documents
fi

step "questions 2/5: train two layers over the turns of a meeting; the first epoch encodes each meeting twice with MiniLM"
# bf16 where the CPU multiplies it fast: a third of the time
fast=$(python -c 'from hat_fairseq.kernels import choose_precision; print("--amp" * (choose_precision("auto", "cpu") == "bf16"))')
quietly hat recipe train ami_questions ${fast:+"$fast"} "$@"
say_best mean_average_precision "average precision"

step "questions 3/5: find the passages of the 20 test meetings"
quietly hat recipe predict ami_questions --score=null
echo "predictions: $results/trained.jsonl"

step "questions 4/5: scores, beside rules without training"
mv "$results/test.jsonl" "$results/trained.jsonl"
hat score evidence "$results/trained.jsonl" --references "$data/text/test.jsonl" \
  --baselines random bm25 \
  --valid "$data/text/valid.jsonl" --train "$data/text/train.jsonl"

step "questions 5/5: three questions on a test meeting, and a page"
python - "$data/text/test.jsonl" "$results" <<'END'
import json
import sys
from pathlib import Path

meeting = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[0])
Path(sys.argv[2], "meeting.json").write_text(json.dumps({"id": meeting["id"], "turns": meeting["turns"]}))
END
hat ask "$checkpoints/checkpoint_best.pt" "$results/meeting.json" \
  "Which functions should the remote control have?" "Who should be the target group?" "How much may the remote control cost?" \
  --data "$data/bin" --html "$results/ask.html" --overwrite
step "done: open $results/ask.html; all output is in $log; ask your own transcript: hat ask FILE 'a question'"
