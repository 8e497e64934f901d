#!/usr/bin/env python3
"""Does HAT summarise better than its baseline when its encoder starts from MiniLM and its decoder from random weights?

    python studies/bert_summaries.py --root XSUM --seeds 1

The recipe `xsum_small` (BERT2RND of Rothe et al. 2020), on 700 articles of XSum: `train.jsonl` of `--root` has 400,
`validation.jsonl` 60 and `test.jsonl` 240. `baseline` has `--no-hierarchy`. The recipe's 4,000 updates of 32 articles
would take a thread about 15 hours. Here it is 200 updates of 8 articles, four epochs, of at most 256 tokens an article,
with a learning rate of 5e-4 and 20 updates of warm-up. These settings were fixed before the first run; nothing was
tuned. `lead` is the first 21 words of an article, and `constant` the training summary that is nearest to 200 others
(`examples/baselines.py`). Where a model writes one text for all articles, its figures are those of that text, and a
difference of two such models says nothing on what they read.

Figures: ROUGE F of `hat score rouge`, mean over the test articles. Every run is a JSON file with the figures of each
test article; a run whose file exists is not repeated. Intervals (95 %) resample articles and trainings.
The predictions, written before the runs: [predictions.md](predictions.md).
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
from harness import RESULTS, flags, record_of
from recipe_runs import RUNS, finished_run, preprocessed, run_recipe
from study_table import add_run, has_run

from hat_fairseq.scoring.files import Summary, read_hypotheses, read_references
from hat_fairseq.scoring.rouge import METRICS, score_documents, split_summary

RECIPE, RULES = "xsum_small", ("lead", "constant")
ARMS = {"HAT": (), "baseline": ("--no-hierarchy",)}
DATA = ("--partial", "--max-source-tokens", "256")
TRAIN = "--cpu --num-workers 0 --update-freq 1 --max-update 200 --total-num-update 200 --warmup-updates 20 --lr 5e-4"


def figures(texts: Path, references: Path) -> dict[str, Any]:
    """F in [0, 1] of each article, by metric, and of how many articles it is, as `hat score rouge` computes it."""
    known = read_references([str(references)])
    assert known.ids is not None
    own, others = read_hypotheses(str(texts), known), [each for each, *_ in known.texts]
    columns = score_documents(lines(own, "punctuation"), lines(others, "given"), stem=True)
    rows = zip(*(columns[name].tolist() for name in METRICS), strict=True)
    return {
        name: {title: (value, 1) for title, value in zip(METRICS.values(), row, strict=True)}
        for name, row in zip(known.ids, rows, strict=True)
    }


def lines(texts: Sequence[Summary], method: str) -> list[list[str]]:
    return [split_summary(text, method) for text in texts]


def cpu_seconds() -> float:
    """Of the commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    parser = flags(RESULTS / "bert_summaries.csv.gz")
    parser.add_argument("--root", type=Path, required=True, help="folder with the three files")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    text, runs = preprocessed(RECIPE) / "text", RUNS / RECIPE
    runs.mkdir(parents=True, exist_ok=True)
    if not (preprocessed(RECIPE) / "manifest.json").is_file():
        run_recipe("preprocess", RECIPE, ["--root", str(args.root), *DATA], runs / "preprocess.log")
    script = Path(__file__).resolve().parents[1] / "examples/baselines.py"
    subprocess.run([sys.executable, script, text / "test.jsonl", text / "train.jsonl", runs], check=True)

    def write(trained: str, arm: str, seed: int, texts: Path, **facts: Any) -> None:
        content = {"task": "summaries", "train": trained, "arm": arm, "seed": seed, **facts}
        scores = figures(texts, text / "test.jsonl")
        content["different_texts"] = len({json.loads(line)["text"] for line in texts.open(encoding="utf-8")})
        add_run(args.out, record_of("rouge-score", **content, scores=scores))

    for rule in RULES:
        write("rules", rule, 1, runs / f"{rule}.jsonl")
    for seed in args.seeds:
        for arm in args.arms:
            if not has_run(args.out, "summaries", "all", arm, seed):
                start = cpu_seconds()
                folder = finished_run(RECIPE, arm.lower(), seed, [*TRAIN.split(), *ARMS[arm]])
                write("all", arm, seed, folder / "test.jsonl", cpu_seconds=round(cpu_seconds() - start))


if __name__ == "__main__":
    main()
