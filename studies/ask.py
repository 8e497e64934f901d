"""What finds the passages and lines of meetings that answer questions: the trained network beside rules.

    hat recipe preprocess qmsum --root QMSUM      # with ExplainMeetSum beside it, for lines; see preprocess/qmsum.py
    hat recipe train qmsum --seed 1 --save-dir checkpoints/qmsum/1 --vectors checkpoints/vectors.npz
    python studies/ask.py rules data-bin/qmsum checkpoints/qmsum/1/checkpoint_best.pt --out rules.csv
    python studies/ask.py model data-bin/qmsum checkpoints/qmsum/*/checkpoint_best.pt \
        --vectors checkpoints/vectors.npz --out model.csv
    python studies/ask.py table rules.csv model.csv      # ours: studies/results/ask.csv.gz

`rules` and `model` write a row for each document, system and figure: sums over its questions, and their number. Figures
of passages are those of the test meetings. ExplainMeetSum has no test meetings here, so lines are those of half of the
validation meetings, for which rules are chosen on the other half, and the trained network has its last epoch, which
nobody has chosen. Answers: each test meeting is asked `OTHERS` questions of other test meetings, too. `--out-of DOMAIN`
has the test meetings of one domain alone, for a training without it: its data folder has no such meetings but for the
test. Intervals draw documents, and trainings (n - 1 of n, for an unbiased variance).
"""

import argparse
import csv
import gzip
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `study_table`
import numpy as np
import torch
from study_table import series_of
from vector_rules import RULES, with_cosines

import hat_fairseq
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.scoring.baselines import baselines
from hat_fairseq.units.baselines import Reference, references_of
from hat_fairseq.units.scores import (
    auroc,
    average_precision,
    f1,
    false_alarms,
)
from hat_fairseq.units.vector_cache import VectorCache
from hat_fairseq.units.vector_file import VectorFile

COLUMNS = ("system", "seed", "domain", "document", "figure", "sum", "count")
OTHERS = 4
DRAWS = 10_000
FIGURES = ("average precision", "F1", "lines, average precision", "answers, AUROC", "answers, false alarms")
Row = tuple[Any, ...]


def records_of(data: Path, split: str, domain: str | None = None) -> list[Any]:
    records: list[Any] = list(read_records(data / f"text/{split}.jsonl", "evidence"))
    return [each for each in records if domain is None or each.meta["domain"] == domain]


def halves(records: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Divides validation meetings, those of each domain by turns: for choices, and for figures of lines."""
    ordered = sorted(records, key=lambda each: (each.meta["domain"], each.id))
    return ordered[::2], ordered[1::2]


def with_others(records: Sequence[Any]) -> list[Any]:
    """Adds to each meeting questions of others, which it is taken not to answer."""
    draw, results = random.Random(0), []
    for record in records:
        others = [each for each in records if each.id != record.id]
        asked = tuple(draw.choice(draw.choice(others).questions) for _ in range(OTHERS))
        results.append(replace(record, questions=record.questions + asked, evidence=record.evidence + ((),) * OTHERS))
    return results


def rows_of_units(name: str, seed: Any, reference: Reference, questions: Sequence[Any], lines: bool) -> Iterator[Row]:
    """Yields the sums of a document for passages, or for lines."""
    marks = reference.marks("lines" if lines else "evidence")
    assert marks is not None
    precisions, f1s, prefix = [], [], "line_" if lines else ""
    for right, answer in zip(marks, questions, strict=False):
        known = answer.get(f"{prefix}probabilities", answer["probabilities"])
        scores = np.array([known[number] for number in reference.numbers], dtype=float)
        if right.any():
            precisions.append(average_precision(scores, right))
            f1s.append(f1(scores >= answer.get(f"{prefix}threshold", 0.5), right))
    where = (name, seed, (reference.record.meta or {})["domain"], reference.record.id)
    if lines:
        yield (*where, "lines, average precision", sum(precisions), len(precisions))
        return
    yield (*where, "average precision", sum(precisions), len(precisions))
    yield (*where, "F1", sum(f1s), len(f1s))


def rules(args: argparse.Namespace) -> Iterator[Row]:
    """Scores all rules; those of lines are chosen on one half of the validation meetings and scored on the other."""
    loaded = hat_fairseq.load(str(args.checkpoints[0]), data=args.data / "bin").loaded
    train, valid = records_of(args.data, "train"), records_of(args.data, "valid")
    questions = [question for each in train for question in each.questions]
    chosen, scored = (references_of(each)[0] for each in halves(valid))
    test = references_of(records_of(args.data, "test", args.out_of))[0]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
        test, chosen, scored = (with_cosines(loaded, each) for each in (test, chosen, scored))
        for name in RULES:
            for lines, own, others in ((False, test, [*chosen, *scored]), (True, scored, chosen)):
                if lines and args.out_of is not None:
                    continue
                (result,) = baselines([RULES[name]], questions, others, own)
                print(f"{name}{', lines' * lines}: {'; '.join(map(str, result.chosen.values()))}", flush=True)
                for reference, prediction in zip(own, result.predictions, strict=True):
                    yield from rows_of_units(name, "", reference, prediction.questions, lines)


def model(args: argparse.Namespace) -> Iterator[Row]:
    """Scores trainings."""
    for seed, path in enumerate(args.checkpoints, start=1):
        best = predictor_of(path, args)
        test = records_of(args.data, "test", args.out_of)
        references, answers = references_of(test)[0], {False: list[float](), True: list[float]()}
        for reference, record, prediction in zip(references, test, best.predictions(with_others(test)), strict=True):
            yield from rows_of_units(args.name, seed, reference, prediction.questions, lines=False)  # type: ignore[attr-defined]
            for number, answer in enumerate(prediction.questions):  # type: ignore[attr-defined]
                if number >= len(record.questions) or record.evidence[number]:
                    answers[number < len(record.questions)].append(answer["answer_probability"])
        scores = np.array(answers[True] + answers[False])
        are = np.arange(len(scores)) < len(answers[True])
        for name, value in (("AUROC", auroc(scores, are)), ("false alarms", false_alarms(scores, are))):
            yield (args.name, seed, "", "all", f"answers, {name}", value, 1)
        last = path.with_name("checkpoint_last.pt")
        if args.out_of is None and last.is_file():
            scored = halves(records_of(args.data, "valid"))[1]
            pairs = zip(references_of(scored)[0], predictor_of(last, args).predictions(scored), strict=True)
            for reference, prediction in pairs:
                yield from rows_of_units(args.name, seed, reference, prediction.questions, lines=True)  # type: ignore[attr-defined]
        vectors_of(args.vectors).save()
        print(f"{path}: scored", flush=True)


def predictor_of(path: Path, args: argparse.Namespace) -> Predictor:
    precision = "bf16" if args.bf16 else "fp32"
    loaded = hat_fairseq.load(str(path), data=args.data / "bin", precision=precision).loaded
    loaded.models[0].core.cache = vectors_of(args.vectors)
    return Predictor(loaded)


@cache
def vectors_of(path: Path) -> VectorCache:
    """Reads the vectors of a training; those of other meetings are computed once for all trainings.

    All trainings have the same frozen encoder, whose weights a model for inference has in another form, so that its
    digest is that of the file.
    """
    store = VectorFile(path)
    cached_vectors = VectorCache(store)
    with np.load(path) as file:
        cached_vectors.encoder_digest, width = file["encoder"].tobytes(), file["vectors"].shape[1]
    cached_vectors.vectors = store.read(cached_vectors.encoder_digest, width)
    cached_vectors.stored = cached_vectors.count
    return cached_vectors


def read(paths: Iterable[Path]) -> dict[str, dict[str, dict[str, dict[tuple[str, str], tuple[float, int]]]]]:
    """Reads sums by figure, system, seed, and domain and document."""
    table: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = (row["domain"], row["document"])
                table[row["figure"]][row["system"]][row["seed"]][key] = float(row["sum"]), int(row["count"])
    return table


def drawn(seeds: Sequence[dict[Any, tuple[float, int]]], documents: Sequence[Any], generator: Any) -> np.ndarray:
    """(DRAWS + 1,) means, x 100: of all, then of drawn series of meetings and seeds.

    Documents are domain and name. The same series are drawn for each seed of the generator.
    """
    sums = np.array([[each.get(document, (0.0, 0))[0] for document in documents] for each in seeds])
    counts = np.array([seeds[0].get(document, (0.0, 0))[1] for document in documents])
    series = list(dict.fromkeys(series_of(name) for _, name in documents))
    chosen = generator.integers(len(series), size=(DRAWS, len(series)))
    weights = np.zeros((DRAWS + 1, len(series)))
    weights[0] = 1
    np.add.at(weights[1:], (np.arange(DRAWS)[:, None], chosen), 1)
    weights = weights[:, [series.index(series_of(name)) for _, name in documents]]
    by_seed = weights @ sums.T / (weights @ counts)[:, None]
    if len(seeds) == 1:
        return np.asarray(100 * by_seed[:, 0])
    picks = np.random.default_rng(1).integers(len(seeds), size=(DRAWS, len(seeds) - 1))
    return 100 * np.concatenate([by_seed[:1].mean(axis=1), np.take_along_axis(by_seed[1:], picks, axis=1).mean(axis=1)])


def interval(values: np.ndarray, signed: bool = False) -> str:
    low, high = np.percentile(values[1:], [2.5, 97.5])
    sign = "+" if signed else ""
    return f"{values[0]:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def table(args: argparse.Namespace) -> None:
    """Prints each figure of all systems, over all meetings and by domain, and differences from the trained one."""
    known = read(args.files)
    for figure in FIGURES:
        systems = known.get(figure, {})
        documents = sorted({key for seeds in systems.values() for each in seeds.values() for key in each})
        groups = {"all": documents} | {
            name: [d for d in documents if d[0] == name] for name in {d[0] for d in documents}
        }
        trained = "trained" if "trained" in systems else None
        print(f"\n{figure}")
        for group in sorted(groups, key=lambda name: (name != "all", name)):
            means = {
                name: drawn(list(seeds.values()), groups[group], np.random.default_rng(0))
                for name, seeds in systems.items()
                if set(groups[group]) <= set(next(iter(seeds.values())))
            }
            for name, values in means.items():
                own = (
                    "" if trained in (None, name) else f"  {trained} minus it {interval(means[trained] - values, True)}"
                )
                print(f"  {group:10s} {name:14s} {interval(values):22s}{own}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("rules", "model"):
        sub = commands.add_parser(name)
        sub.add_argument("data", type=Path, help="the folder of hat preprocess")
        sub.add_argument("checkpoints", type=Path, nargs="+")
        sub.add_argument("--out", type=Path, required=True)
        sub.add_argument("--out-of", metavar="DOMAIN")
        sub.add_argument("--bf16", action="store_true", help="compute in bf16")
        sub.add_argument("--vectors", type=Path, help="model: those that the training has kept")
        sub.add_argument("--name", default="trained")
    commands.add_parser("table").add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.command == "table":
        table(args)
        return
    rows = list({"rules": rules, "model": model}[args.command](args))
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
