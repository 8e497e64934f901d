#!/usr/bin/env bash
# Real meetings in, summaries and their scores out, from scratch on a CPU: `hat demo` and `make demo` run this.
# Everything goes to ami_small in data-bin/, checkpoints/ and results/ of the current folder; data and training of an
# earlier run are kept. What the commands print is in results/ami_small/demo.log.
set -euo pipefail
data=data-bin/ami_small results=results/ami_small checkpoints=checkpoints/ami_small
log=$results/demo.log
mkdir -p "$results"
: > "$log"
# shellcheck source=examples/steps.sh
. "$(dirname "$0")/steps.sh"

step "summaries 1/6: preprocess; turns as sentences, roles as segments, BPE learned on the training part"
if [ -e "$data/manifest.json" ]; then
  echo "$data is there already"
else
  quietly hat recipe preprocess ami_small
  say_documents
fi

step "summaries 2/6: train a small HAT"
quietly hat recipe train ami_small "$@"
say_best loss "loss"

step "summaries 3/6: summarize the 20 test meetings with beam search"
quietly hat recipe generate ami_small --score=null
echo "summaries: $results/hat.jsonl"
mv "$results/test.jsonl" "$results/hat.jsonl"

step "summaries 4/6: baselines, the beginning of the meeting, and the best constant summary"
quietly python "$(dirname "$0")/baselines.py" "$data/text/test.jsonl" "$data/text/train.jsonl" "$results" 286
echo "baselines: $results/lead.jsonl, $results/constant.jsonl"

step "summaries 5/6: scores and one meeting"
hat score rouge "$results/lead.jsonl" "$results/constant.jsonl" "$results/hat.jsonl" \
  --against-others --references "$data/text/test.jsonl"
hat show --documents "$data/text/test.jsonl" --hypotheses "$results/hat.jsonl"
# The words are about the whole training, and not about a shorter one.
[ $# -gt 0 ] || cat <<'END'

What this shows: the whole path works, and a model that has read 97 meetings for a few minutes writes in the manner of
their summaries, far from the lead. What it does not show: understanding. All meetings design a remote control, so one
constant summary is a strong baseline; "against other documents' references" says how little of a score is about the
meeting itself; many details are plausible rather than true. The paper's HAT starts from BART and reaches 52.3 / 20.2 / 50.6.
END

step "summaries 6/6: what the model looks at in the first test meeting"
pictures=(--png "$results/look.png")
if ! python -c 'import matplotlib' 2>/dev/null; then
  echo "no pictures as PNG: pip install matplotlib"
  pictures=()
fi
# The checkpoint and the options of the summary that was scored.
quietly hat look "$checkpoints/checkpoint_last.pt" "$data/text/test.jsonl" --data "$data/bin" \
  --beam 4 --no-repeat-ngram-size 3 --min-len 300 --max-len-b 400 \
  --html "$results/look.html" "${pictures[@]}" --overwrite
echo "the page: $results/look.html"
[ ! -e "$results/look.png" ] || echo "a picture: $results/look.png"
step "done: all output is in $log"
