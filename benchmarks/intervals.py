"""Figures of trainings on test documents, with intervals and tests of differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from study_table import Run, series_of

DRAWS = 2000  # of documents and trainings, for an interval


@dataclass(frozen=True)
class Figure:
    """A mean in percent or bits, or a difference, with its interval and, of a difference, the p of a two-sided test."""

    mean: float
    low: float
    high: float
    p: float | None = None
    digits: int = 1

    def __str__(self) -> str:
        form = ("" if self.p is None else "+") + f".{self.digits}f"
        return f"{self.mean:{form}} [{self.low:{form}}, {self.high:{form}}]"


def figure_of(runs: Sequence[Run], figure: str, others: Sequence[Run] = (), bits: bool = False) -> Figure:
    """The mean of a figure over the trainings, with its interval; or the difference from those of others.

    It is in percent, unless it is in `bits`.

    `others` have the same seeds; or they are rules, which have one run for each set of tested documents. The interval
    has the 2.5 and 97.5 % quantiles of `DRAWS` draws of test documents and of trainings. Documents of one series, such
    as the meetings of one team, are drawn together. Of n trainings that tested the same documents each draw has n - 1,
    with replacement: with n, the variance would be too small by (n - 1) / n.
    """

    def values(run: Run) -> np.ndarray:
        """Sum and count of each document."""
        return np.array([run["scores"][name][figure] for name in sorted(run["scores"])], dtype=float)

    trainings: dict[tuple[str, ...], list[np.ndarray]] = {}  # by the documents that they tested
    for run in runs:
        rows = values(run)
        if others:
            tested = [other for other in others if other["scores"].keys() == run["scores"].keys()]
            (other,) = [each for each in tested if each["seed"] == run["seed"]] or tested
            rows -= values(other) * [1, 0]
        trainings.setdefault(tuple(sorted(run["scores"])), []).append(rows * [1 if bits else 100, 1])
    folds = {names: np.stack(each) for names, each in trainings.items()}
    total = sum(fold.mean(axis=0).sum(axis=0) for fold in folds.values())
    drawn, random = np.zeros((DRAWS, 2)), np.random.default_rng(1)
    place = {name: number for number, name in enumerate(dict.fromkeys(series_of(n) for names in folds for n in names))}
    chosen = draws_of(len(place))
    for names, fold in folds.items():
        count = len(fold)
        times = random.multinomial(size := max(1, count - 1), [1 / count] * count, DRAWS) / size
        weights = chosen[:, [place[series_of(name)] for name in names]].astype(float)
        drawn += np.stack([(times * (weights @ fold[:, :, part].T)).sum(axis=1) for part in (0, 1)], axis=1)
    means = drawn[:, 0] / drawn[:, 1]
    low, high = np.percentile(means, [2.5, 97.5])
    rarer = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (rarer + 1) / (DRAWS + 1)) if others else None
    return Figure(total[0] / total[1], low, high, p, 2 if bits else 1)


def holm(values: Sequence[float]) -> list[float]:
    """The p of several tests adjusted by Holm's method (1979)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return adjusted


@cache
def draws_of(units: int) -> np.ndarray:
    """How often each document or series is in each of 2,000 test sets, drawn as `hat score` draws them with seed 1."""
    random = np.random.default_rng(1)
    return np.stack([np.bincount(random.integers(0, units, units), minlength=units) for _ in range(DRAWS)])
