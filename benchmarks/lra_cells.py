"""Trainings of the small recipes of Long Range Arena, one cell of a table after the other."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from recipe_runs import RESULTS, RUNS, flags_of, run_recipe, write_result

from hat_fairseq.data.readers import READERS
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records

SPARSE = ["--arch", "ernie_sparse_lra_{task}"]
SAR = ["--criterion", "self_attention_regularization", "--sar-alpha", "0.5", "--sar-roll", "2"]
Cell = dict[str, Any]


def cell_parser(doc: str | None, seeds: Sequence[int]) -> argparse.ArgumentParser:
    """The flags that do not say which models are trained."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("listops", "text"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--out", type=Path, help="JSON file (default: in results/)")
    parser.add_argument("--updates", type=int, help="of each training (default: the recipe's)")
    return parser


def run_cells(
    question: str,
    args: argparse.Namespace,
    cells: Iterable[Cell],
    train: Callable[[Cell, Path, int], dict[str, float]],
    order: Callable[[Cell], Any],
    summary: Callable[[Sequence[Cell]], dict[str, Any]],
) -> Path:
    """Run the cells that the result does not have yet, and write it after each.

    Args:
        question: name of the script and of its result.
        args: of `cell_parser`.
        cells: what distinguishes the runs.
        train: from a cell, a folder and a number of updates to the results of a run.
        order: key of the order of runs.
        summary: of all runs.
    Returns:
        the result.
    """
    recipe, path = f"lra_{args.task}_small", args.out or RESULTS / f"{question}_{args.task}.json"
    settings = {flag: flags_of("train", recipe)[f"--{flag}"] for flag in ("batch-size", "max-update", "lr")}
    settings["max-update"] = str(args.updates or settings["max-update"])
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    runs = earlier["runs"] if earlier.get("settings") == settings else []
    missing = [cell for cell in cells if not any(cell.items() <= run.items() for run in runs)]
    for cell in missing:
        folder = RUNS / question / args.task / "-".join(map(str, cell.values())).replace(" ", "_")
        runs.append({**cell, **train(cell, folder, int(settings["max-update"]))})
        runs.sort(key=order)
        figures = {"baselines": baselines(recipe), "runs": runs, "summary": summary(runs)}
        write_result(question, path, recipe=recipe, settings=settings, **figures)
    if not missing:  # the command and the versions remain those of the runs
        path.write_text(json.dumps({**earlier, "baselines": baselines(recipe)}, indent=2) + "\n", encoding="utf-8")
    return path


def finished_run(
    task: str,
    folder: Path,
    model: Sequence[str],
    seed: int,
    updates: int,
    start: str = "scratch",
    regularized: bool = False,
) -> dict[str, float]:
    """Trains and predicts; a training that was interrupted goes on.

    Args:
        folder: of the run.
        model: flags of the model.
        updates: of each training; with regularization twice as many of half the batch.
        start: one of `STARTS`. Models with the same flags share their pre-training.
        regularized: train with self-attention regularization.
    Returns:
        `accuracy` in percent on the test part, and `minutes`, the pre-training included if it was done here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipe, begin = f"lra_{task}_small", time.monotonic()
    common = [*(flag.format(task=task) for flag in model), "--seed", str(seed)]
    length = ["--max-update", str(updates)]
    if start == "pretrained":
        pretraining = folder.parent / "-".join(["pretraining", *(flag.strip("-") for flag in common)])
        pretraining.mkdir(exist_ok=True)
        flags = [*common, *length, "--total-num-update", str(updates), "--save-dir", str(pretraining)]
        run_recipe("train", f"{recipe}_pretraining", flags, pretraining / "train.log")
        common += ["--finetune-from-model", str(pretraining / "checkpoint_last.pt")]
    if regularized:
        given = flags_of("train", recipe)
        halves = {"--batch-size": int(given["--batch-size"]) // 2, "--update-freq": 1}
        halves |= {"--max-update": 2 * updates, "--warmup-updates": 2 * int(given["--warmup-updates"])}
        length = []
        common += [*SAR, *(word for flag, value in halves.items() for word in (flag, str(value)))]
    run_recipe("train", recipe, [*common, *length, "--save-dir", str(folder / "checkpoints")], folder / "train.log")
    predictions = folder / "test.jsonl"
    where = ["--model", str(folder / "checkpoints/checkpoint_best.pt"), "--out", str(predictions), "--score=null"]
    run_recipe("predict", recipe, [*where, "--overwrite"], folder / "predict.log")
    found = accuracy(recipe, predictions)
    print(f"{folder}: {found}", flush=True)
    return {"accuracy": found, "minutes": round((time.monotonic() - begin) / 60, 1)}


def references(recipe: str, split: str) -> Iterator[Record]:
    folder = Path(flags_of("preprocess", recipe)["--out"])
    kind = json.loads((folder / "bin/pipeline.json").read_text(encoding="utf-8"))["settings"]["kind"]
    return read_records(folder / f"text/{split}.jsonl", kind)


def baselines(recipe: str) -> dict[str, float]:
    """Accuracy in percent of the baselines of ListOps on the test part; of other data, that of the best constant."""
    if "listops" not in recipe:
        ((label, _),) = Counter(record.label for record in references(recipe, "train")).most_common(1)
        labels = [record.label for record in references(recipe, "test")]
        return {"constant": round(100 * labels.count(label) / len(labels), 2)}
    sys.path.append(str(READERS))
    from listops import BASELINES, Baselines

    fitted, test = Baselines(), list(expressions(recipe, "test"))
    for text, value in expressions(recipe, "train"):
        fitted.learn(text, value)
    right = Counter(name for text, value in test for name in fitted.right(text, value))
    return {name: round(100 * right[name] / len(test), 2) for name in BASELINES}


def expressions(recipe: str, split: str) -> Iterator[tuple[str, int]]:
    """ListOps as it was before preprocessing, and the values."""
    for record in references(recipe, split):
        yield " ".join("]" if symbol == "X" else symbol for symbol in record.parts[0]), int(record.label or "")


def accuracy(recipe: str, predictions: Path) -> float:
    """In percent, of the test part."""
    lines = predictions.read_text(encoding="utf-8").splitlines()
    labels = {line["id"]: line["label"] for line in map(json.loads, lines)}
    right = [labels[record.id] == record.label for record in references(recipe, "test")]
    return round(100 * sum(right) / len(right), 2)
