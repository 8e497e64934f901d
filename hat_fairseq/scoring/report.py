"""Reports of metrics: intervals by resampling documents (Efron's percentile bootstrap), and tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A score of the test set and the limits of its 95 % interval; the limits are None without resampling."""

    mean: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        limits = "" if self.low is None or self.high is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.mean:.2f}{limits}"


def bootstrap(
    rows: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], samples: int, seed: int
) -> list[Interval]:
    """Computes the figures that `statistic` makes of the test set, each with its percentile interval.

    The same `seed` and number of documents draw the same documents, so that several metrics or systems scored on one
    test set are resampled alike.

    Args:
        rows: what is known of each document, (documents, ...); a ValueError if there are none.
        statistic: from the rows of some documents to figures of shape (F,).
        samples: number of resampled test sets; 0 for no intervals.
    """
    if len(rows) == 0:
        raise ValueError("no documents to score")
    figures = statistic(rows)
    if samples == 0:
        return [Interval(float(figure), None, None) for figure in figures]
    random = np.random.default_rng(seed)
    # One resampled set at a time: a (samples, documents) index would take 100 MB on CNN/DailyMail.
    drawn = [statistic(rows[random.integers(0, len(rows), len(rows))]) for _ in range(samples)]
    tail = 100 * (1 - CONFIDENCE) / 2
    limits = np.percentile(drawn, [tail, 100 - tail], axis=0).T
    return [Interval(float(f), float(low), float(high)) for f, (low, high) in zip(figures, limits, strict=True)]


def resampling(samples: int, seed: int, of: str) -> str:
    """Describes the resampling, for a signature; `of`: what is drawn."""
    return f"{samples} of {of} (95 %, seed {seed})" if samples else "none"


def bootstrap_mean(values: np.ndarray, samples: int, seed: int) -> Interval:
    """Computes the mean of (documents,) values with its interval; see `bootstrap`."""
    (interval,) = bootstrap(values, lambda drawn: np.array([drawn.mean()]), samples, seed)
    return interval


@dataclass(frozen=True)
class Report:
    """Lines to print (tables, then signatures), notes on what lowers a score unexpectedly, and the JSON of --json."""

    lines: list[str]
    notes: list[str]
    record: Any


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a line for each row, in columns; all rows have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def digits(threshold: float) -> str:
    """Writes a threshold with all its digits: a rounded one may be on the other side of the score it comes from."""
    return np.format_float_positional(threshold, min_digits=2)
