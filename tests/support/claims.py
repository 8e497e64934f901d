"""Figures of our experiments, recomputed from the rows in `studies/results` and `benchmarks/results`."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ask
import numpy as np
import render_studies
from intervals import Figure, figure_of, holm

ROOT = Path(__file__).resolve().parents[2]


@cache
def task_of(name: str) -> dict[str, Any]:
    """The runs of a task, and its question."""
    return next(record for record in render_studies.records() if record.get("task") == name)


@cache
def compared(task: str, metric: str) -> dict[str, tuple[int, Figure]]:
    """Runs and figure of each pair of a task that has been run."""
    differences, _ = render_studies.compared(task_of(task), [metric])
    return {pair: (number, figures[metric]) for pair, (number, figures) in differences.items()}


def difference(task: str, metric: str, pair: str) -> Figure:
    """That of a pair as studies/tables.md calls it, such as `HAT (upper) - chunks (upper)`."""
    return compared(task, metric)[pair][1]


def runs(task: str, metric: str, pair: str) -> int:
    return compared(task, metric)[pair][0]


def adjusted(task: str, metric: str, pair: str) -> float:
    """Returns p by Holm's method for the differences of the task."""
    differences = compared(task, metric)
    return holm([figure.p or 1.0 for _, figure in differences.values()])[list(differences).index(pair)]


def runs_of(task: str, arm: str) -> list[dict[str, Any]]:
    """The runs of an arm with what is trained, such as `HAT (upper)`."""
    name, _, trained = arm.removesuffix(")").rpartition(" (")
    return render_studies.cells_of(task_of(task))[trained, name]


@cache
def arm(task: str, metric: str, name: str) -> Figure:
    return figure_of(runs_of(task, name), metric, bits=render_studies.in_bits(task_of(task)))


def mean_of(task: str, metric: str, name: str) -> float:
    """The mean of an arm, as `figure_of` has it, without an interval, which takes long for many documents."""
    scale, trainings = 1 if render_studies.in_bits(task_of(task)) else 100, runs_of(task, name)
    times = Counter(name for run in trainings for name in run["scores"])
    sums = [
        [own[metric][part] / times[key] for run in trainings for key, own in run["scores"].items()] for part in (0, 1)
    ]
    return scale * sum(sums[0]) / sum(sums[1])


def size_of(task: str) -> int:
    """How many documents are tested."""
    return len({name for run in task_of(task)["runs"] for name in run["scores"]})


def counted(task: str, metric: str, name: str) -> float:
    """The weight of the documents that an arm tests, such as the number of their questions, once for each document."""
    weights = {key: each[metric][1] for run in runs_of(task, name) for key, each in run["scores"].items()}
    return sum(weights.values())


@cache
def table_of_ask() -> Any:
    return ask.read([ROOT / "studies/results/ask.csv.gz"])


@cache
def draws_of_ask(figure: str, system: str, group: str) -> np.ndarray:
    seeds = table_of_ask()[figure][system]
    names = sorted({key for each in seeds.values() for key in each if group in ("all", key[0])})
    return ask.drawn(list(seeds.values()), names, np.random.default_rng(0))


def asked(figure: str, group: str, systems: str) -> Figure:
    """A figure of a system of the study `ask`, or `ONE - OTHER`; p is not corrected."""
    one, _, other = systems.partition(" - ")
    draws = draws_of_ask(figure, one, group) - (draws_of_ask(figure, other, group) if other else 0)
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    rarer = min((draws[1:] <= 0).sum(), (draws[1:] >= 0).sum())
    return Figure(draws[0], low, high, float(2 * (rarer + 1) / len(draws)) if other else None)


def article(row: str, articles: str = "all") -> Figure:
    """A figure of the study `pretrained_articles`, whose result has texts."""
    result = json.loads((ROOT / "studies/results/pretrained_articles.json").read_text("utf-8"))
    mean, interval = result["rows"][row][articles].split(" ", 1)
    return Figure(float(mean), *json.loads(interval))


def times(contender: str, source: int) -> Sequence[float]:
    """Returns the least and the most of the median times of a peer in generation, by those of hat_fairseq."""
    medians = []
    for path in sorted((ROOT / "benchmarks/results").glob("generation*.json")):
        result = json.loads(path.read_text("utf-8"))
        settings = [each["name"] for each in result["settings"] if each.get("source") == source]
        rows = [result["summary"][name].get(contender) for name in settings]
        medians += [row["times_median"] for row in rows if row]
    return min(medians), max(medians)
