#!/usr/bin/env bash
# Questions on real meetings, and the passages that answer them: `hat demo ask` runs this.
# Everything goes to ami_questions in data-bin/, checkpoints/ and results/ of the current folder, and to minilm/; data and
# training of an earlier run are kept.
set -euo pipefail
data=data-bin/ami_questions results=results/ami_questions checkpoint=checkpoints/ami_questions/checkpoint_best.pt
start=$SECONDS

step() { printf '\n=== %s (%d s so far)\n' "$*" "$((SECONDS - start))"; }

step "1/5 preprocess: 137 meetings with 847 questions, and the turns that answer each"
if [ ! -e minilm/model.pt ]; then
  hat import minilm --out minilm/model.pt > minilm.log || { cat minilm.log; exit 1; }
  rm minilm.log
fi
if [ -e "$data/manifest.json" ]; then
  echo "$data is there already"
else
  hat recipe preprocess ami_questions
fi

step "2/5 train two layers over the turns of a meeting; the first epoch encodes each turn once with MiniLM"
hat recipe train ami_questions "$@"

step "3/5 find the passages of the 20 test meetings"
hat recipe predict ami_questions --score=null

step "4/5 scores, beside baselines"
python "$(dirname "$0")/cosine_baselines.py" ami_questions
mv "$results/test.jsonl" "$results/trained.jsonl"
hat score evidence --references "$data/text/test.jsonl" \
  --hypotheses "$results/trained.jsonl" "$results/chunk.jsonl" "$results/alone.jsonl" "$results/first_512.jsonl" \
  --baselines random first tfidf chunk --valid "$data/text/valid.jsonl" --train "$data/text/train.jsonl"

step "5/5 three questions on a test meeting, and a page"
python - "$data/text/test.jsonl" "$results" <<'END'
import json
import sys
from pathlib import Path

meeting = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[0])
Path(sys.argv[2], "meeting.json").write_text(json.dumps({"id": meeting["id"], "turns": meeting["turns"]}))
END
hat ask "$checkpoint" "$results/meeting.json" \
  "Which functions should the remote control have?" "Who should be the target group?" "How much may the remote control cost?" \
  --data "$data/bin" --page "$results/ask.html" --overwrite
step "done: open $results/ask.html"
