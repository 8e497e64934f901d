#!/usr/bin/env python3
"""Does ERNIE-Sparse help on Long Range Arena? Its parts beside a plain Transformer and BigBird, on reduced tasks.

    python studies/lra.py listops --seeds 1

The tasks are small enough for a CPU: the recipes `lra_listops_small` and `lra_text_small`. All models have the same
sizes, except for the projections of the representatives, and the same budget: a model with self-attention
regularization (SAR) has half the documents in a batch, each of them twice, and twice the updates. Each model is trained
from scratch, and also after predicting masked tokens of the task's own training data (Amos et al. 2024). `BigBird` has
one global block at either end, ERNIE-Sparse two at the beginning; without representative tokens (HST) the models differ
only in this. The checkpoint is the best one on the validation part. Its accuracy is measured on the test part: 2,000
expressions, or the first 1,000 reviews of either label, so the standard error is 1.1 points.

The baselines are fitted on the training part: the best constant, the most frequent value for the operator of the root,
and that for this operator and its value for its own digits (`[MAX 2 [MIN 4 7 ] 0 ]` is read as `[MAX 2 0 ]`).

ListOps after 1,000 updates: 27 of 28 runs are right in 31.9 to 34.5 %. The operator of the root, which is the first
symbol, gives as much, and with its own digits more than any run. So no model has learned to compute nested expressions,
and the table says nothing on differences between the models. One pre-trained run never left the constant. Text has no
table: after 500 updates the first two models were at chance. In these runs the random blocks of BigBird and
ERNIE-Sparse were drawn from the first 11 blocks; today BigBird's follow the published code, and ERNIE-Sparse's come
from the whole document.

Preprocess the recipe first. Runs go to `bench-runs/lra/TASK` in the current directory. The result is written after each
run, and runs that it holds are kept, so an interrupted benchmark resumes. Nothing is timed.
"""

import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
from harness import RESULTS, flags, write_result
from recipe_runs import RUNS, flags_of, preprocessed, run_recipe

from hat_fairseq.data.readers import READERS
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records

sys.path.append(str(READERS))
from lra_listops import END, FUNCTIONS  # noqa: E402

Example = tuple[Sequence[str], Any]  # symbols, value
SPARSE = ["--arch", "ernie_sparse_lra_{task}"]
SAR = ["--criterion", "self_attention_regularization", "--sar-alpha", "0.5", "--sar-roll", "2"]
MODELS = {
    "Transformer": ["--arch", "transformer_lra_{task}", "--sparse-block=null"],
    "BigBird": ["--arch", "bigbird_lra_{task}"],
    "ERNIE-Sparse without HST": [*SPARSE, "--no-hierarchy"],
    "ERNIE-Sparse without SAR": SPARSE,
    "ERNIE-Sparse": SPARSE,
}
REGULARIZED = {"ERNIE-Sparse without HST", "ERNIE-Sparse"}
STARTS = ("scratch", "pretrained")


def main() -> None:
    parser = flags()
    parser.add_argument("task", choices=("listops", "text"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, help="of each training (default: the recipe's)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS))
    args = parser.parse_args()
    recipe, path = f"lra_{args.task}_small", args.out or RESULTS / f"lra_{args.task}.json"
    settings = {flag: flags_of("train", recipe)[f"--{flag}"] for flag in ("batch-size", "max-update", "lr")}
    settings["max-update"] = str(args.updates or settings["max-update"])
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    runs = earlier["runs"] if earlier.get("settings") == settings else []
    content = {"recipe": recipe, "settings": settings, "baselines": baselines(recipe)}
    for seed, start, model in product(args.seeds, args.starts, args.models):
        cell = {"model": model, "start": start, "seed": seed}
        if any(cell.items() <= run.items() for run in runs):
            continue
        folder = RUNS / "lra" / args.task / "-".join(map(str, cell.values())).replace(" ", "_")
        runs.append({**cell, **finished_run(args.task, folder, **cell, updates=int(settings["max-update"]))})
        runs.sort(key=lambda run: (STARTS.index(run["start"]), list(MODELS).index(run["model"]), run["seed"]))
        write_result(path, **content, runs=runs, summary=summary(runs))


def finished_run(task: str, folder: Path, model: str, start: str, seed: int, updates: int) -> dict[str, float]:
    """Train and predict; a training that was interrupted goes on, and models with the same flags share pre-training.

    Returns:
        `accuracy` in percent on the test part, and `minutes`, the pre-training included if it was done here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipe, begin = f"lra_{task}_small", time.monotonic()
    common = [*(flag.format(task=task) for flag in MODELS[model]), "--seed", str(seed)]
    length = ["--max-update", str(updates)]
    if start == "pretrained":
        pretraining = folder.parent / "-".join(["pretraining", *(flag.strip("-") for flag in common)])
        pretraining.mkdir(exist_ok=True)
        flags = [*common, *length, "--total-num-update", str(updates), "--save-dir", str(pretraining)]
        run_recipe("train", f"{recipe}_pretraining", flags, pretraining / "train.log")
        common += ["--finetune-from-model", str(pretraining / "checkpoint_last.pt")]
    if model in REGULARIZED:
        recorded = flags_of("train", recipe)
        halves = {"--batch-size": int(recorded["--batch-size"]) // 2, "--update-freq": 1}
        halves |= {"--max-update": 2 * updates, "--warmup-updates": 2 * int(recorded["--warmup-updates"])}
        length = []
        common += [*SAR, *(word for flag, value in halves.items() for word in (flag, str(value)))]
    run_recipe("train", recipe, [*common, *length, "--save-dir", str(folder / "checkpoints")], folder / "train.log")
    predictions = folder / "test.jsonl"
    where = ["--model", str(folder / "checkpoints/checkpoint_best.pt"), "--out", str(predictions), "--score=null"]
    run_recipe("predict", recipe, [*where, "--overwrite"], folder / "predict.log")
    percent = accuracy(recipe, predictions)
    print(f"{folder}: {percent}", flush=True)
    return {"accuracy": percent, "minutes": round((time.monotonic() - begin) / 60, 1)}


def references(recipe: str, split: str) -> Iterator[Record]:
    folder = preprocessed(recipe)
    kind = json.loads((folder / "bin/pipeline.json").read_text(encoding="utf-8"))["settings"]["kind"]
    return read_records(folder / f"text/{split}.jsonl", kind)


def baselines(recipe: str) -> dict[str, float]:
    """Accuracy in percent on the test part of what predicts the most frequent label of training data that look alike.

    All look alike; of ListOps also those with the same root operator, and those in which it has the same value for its
    own digits.
    """
    training, tested = (
        [(record.parts[0], record.label) for record in references(recipe, split)] for split in ("train", "test")
    )
    read = views if "listops" in recipe else lambda _: {"constant": ()}
    guesses = right_guesses(training, tested, read)
    return {name: round(100 * sum(right) / len(right), 2) for name, right in guesses.items()}


def views(symbols: Sequence[str]) -> dict[str, Hashable]:
    """What each baseline reads of an expression."""
    root, *rest = symbols
    level, digits = 0, []
    for symbol in rest:
        level += symbol.startswith("[") - (symbol in (END, "X"))  # X: as readers write it
        if level == 0 and symbol.isdigit():
            digits.append(int(symbol))
    value = FUNCTIONS[root](digits) if digits else None
    return {"constant": (), "root operator": root, "root operator and its digits": (root, value)}


def right_guesses(
    training: Iterable[Example],
    tested: Sequence[Example],
    views: Callable[[Sequence[str]], dict[str, Hashable]],
) -> dict[str, list[bool]]:
    """Whether the most frequent value of the training expressions that look alike is right; of all if none does."""
    counts: defaultdict[Hashable, Counter[Any]] = defaultdict(Counter)
    for symbols, value in training:
        for view in views(symbols).items():
            counts[view][value] += 1

    def guess(view: Hashable) -> Any:
        return (counts.get(view) or counts["constant", ()]).most_common(1)[0][0]

    names = views(tested[0][0])
    return {name: [guess((name, views(symbols)[name])) == value for symbols, value in tested] for name in names}


def accuracy(recipe: str, predictions: Path) -> float:
    """In percent, of the test part."""
    lines = predictions.read_text(encoding="utf-8").splitlines()
    labels = {line["id"]: line["label"] for line in map(json.loads, lines)}
    right = [labels[record.id] == record.label for record in references(recipe, "test")]
    return round(100 * sum(right) / len(right), 2)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each start and model: mean accuracy, and the accuracy of each seed."""
    cells: dict[str, list[float]] = {}
    for run in runs:
        cells.setdefault(f"{run['model']}, {run['start']}", []).append(run["accuracy"])
    return {name: {"mean": round(statistics.mean(seeds), 2), "seeds": seeds} for name, seeds in cells.items()}


if __name__ == "__main__":
    main()
