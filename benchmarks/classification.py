#!/usr/bin/env python3
"""Do the encoders learn? Recipes of document classification beside a bag of words, on the same documents.

    python benchmarks/classification.py hyperpartisan_small --seeds 1 2 3

The bag of words is scikit-learn's TF-IDF of words and pairs of words with logistic regression; its C is chosen on the
validation part, as the recipes choose their checkpoint. Figures are means ± standard deviations over seeds of test
accuracy and macro F1. The interval (95 %, bootstrap over the test documents, mean over seeds) is wide, because there
are few documents. `hyperpartisan_granite` was a recipe until version 0.3: granite-embedding-30m-english (6 layers of
384), fine-tuned.

Preprocess the recipes first, from the same release. Runs go to `bench-runs/RECIPE/SEED` in the current directory.
Finished runs are kept, so an interrupted benchmark resumes. Nothing is timed, so several may run at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipe_runs import RESULTS, RUNS, flags_of, mean_and_deviation, run_recipe, write_result
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.recipes import files

BAG_OF_WORDS = "bag of words"
C_VALUES = (0.1, 1.0, 10.0, 100.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", choices=files.names(), metavar="RECIPE")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    text = text_of(args.recipes[0])
    for name in args.recipes[1:]:
        check_same_documents(text, text_of(name))
    outputs = {(BAG_OF_WORDS, 0): bag_of_words(text)}
    outputs |= {(name, seed): finished_run(name, seed) for seed in args.seeds for name in args.recipes}
    scores = score(text / "test.jsonl", outputs.values())
    rows = [{"system": name, "seed": seed, "scores": scores[str(path)]} for (name, seed), path in outputs.items()]
    documents = {split: len(examples(text, split)) for split in ("train", "valid", "test")}
    subject = args.recipes[0].split("_")[0]
    path = RESULTS / f"classification_{subject}.json"
    write_result("classification", path, documents=documents, runs=rows, summary=summary(rows))


def text_of(name: str) -> Path:
    return Path(flags_of("preprocess", name)["--out"], "text")


def examples(text: Path, split: str) -> list[Record]:
    return list(read_records(text / f"{split}.jsonl", "classification"))


def check_same_documents(text: Path, other: Path) -> None:
    """Exits where two recipes were preprocessed from other documents or other splits."""
    for split in ("train", "valid", "test"):
        if examples(text, split) != examples(other, split):
            sys.exit(f"{text} and {other} differ in {split}: preprocess both from the same release")


def bag_of_words(text: Path) -> Path:
    """Predictions of the baseline for the test part, in a file as `hat predict` writes it."""
    parts = {split: examples(text, split) for split in ("train", "valid", "test")}
    texts = {split: [plain(example) for example in part] for split, part in parts.items()}
    labels = {split: [example.label for example in part] for split, part in parts.items()}
    models = [classifier(c).fit(texts["train"], labels["train"]) for c in C_VALUES]
    best = max(models, key=lambda model: model.score(texts["valid"], labels["valid"]))
    path = RUNS / "bag-of-words.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for example, label in zip(parts["test"], best.predict(texts["test"]), strict=True):
            file.write(json.dumps({"id": example.id, "label": str(label)}) + "\n")
    return path


def plain(example: Record) -> str:
    parts = example.parts
    return "\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts)


def classifier(c: float) -> Pipeline:
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
    return make_pipeline(words, LogisticRegression(C=c, max_iter=3000))


def finished_run(name: str, seed: int) -> Path:
    """Train and predict, unless that was done before; returns the predictions."""
    folder = RUNS / name / str(seed)
    out = folder / "test.jsonl"
    if out.is_file():
        return out
    folder.mkdir(parents=True, exist_ok=True)
    checkpoints = folder / "checkpoints"
    run_recipe("train", name, ["--seed", str(seed), "--save-dir", str(checkpoints)], folder / "train.log")
    where = ["--model", str(checkpoints / "checkpoint_best.pt"), "--out", str(out), "--score=null"]
    run_recipe("predict", name, where, folder / "predict.log")
    return out


def score(references: Path, hypotheses: Any) -> dict[str, dict[str, float]]:
    """Accuracy and F1 of each file, by `hat score`."""
    out = RUNS / "scores.json"
    command = ["score", "classification", "--references", str(references), "--json", str(out), "--overwrite"]
    command.append("--hypotheses")
    subprocess.run(
        [sys.executable, "-m", "hat_fairseq.cli", *command, *map(str, hypotheses)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    record = json.loads(out.read_text(encoding="utf-8"))
    return {path: figures(report) for path, report in record.items()}


def figures(report: dict[str, Any]) -> dict[str, float]:
    """Accuracy, its 95 % interval over the test documents, and macro F1."""
    accuracy = report["figures"]["accuracy"]
    values = {"accuracy": accuracy["mean"], "low": accuracy["low"], "high": accuracy["high"]}
    values["macro F1"] = report["figures"]["macro F1"]["mean"]
    return {name: round(value, 2) for name, value in values.items()}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each system and metric: mean and standard deviation over seeds."""
    result: dict[str, dict[str, float]] = {}
    for system in dict.fromkeys(row["system"] for row in rows):
        scores = [row["scores"] for row in rows if row["system"] == system]
        result[system] = {}
        for metric in scores[0]:
            result[system] |= mean_and_deviation(metric, [score[metric] for score in scores])
    return result


if __name__ == "__main__":
    main()
