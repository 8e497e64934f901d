"""Reports of metrics: intervals by resampling documents (Efron's percentile bootstrap), and tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A score of the test set and the limits of its 95 % interval; the limits are None without resampling."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]")


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
    figures = statistic(rows).tolist()
    if samples == 0:
        return [Interval(figure) for figure in figures]
    random = np.random.default_rng(seed)
    # One resampled set at a time: a (samples, documents) index would take 100 MB on CNN/DailyMail.
    drawn = [statistic(rows[random.integers(0, len(rows), len(rows))]) for _ in range(samples)]
    limits = np.percentile(drawn, [2.5, 97.5], axis=0).T.tolist()
    return [Interval(figure, *pair) for figure, pair in zip(figures, limits, strict=True)]


def bootstrap_mean(values: np.ndarray, samples: int, seed: int) -> Interval:
    """Computes the mean of (documents,) values with its interval; see `bootstrap`."""
    (interval,) = bootstrap(values, lambda drawn: drawn.mean(keepdims=True), samples, seed)
    return interval


def resampling(samples: int, seed: int, unit: str) -> str:
    """Describes the resampling, for a signature; `unit`: what is drawn."""
    return f"{samples} of {unit} (95 %, seed {seed})" if samples else "none"


@dataclass(frozen=True)
class Report:
    """What `hat score` prints of all systems and writes to the file of --json."""

    rows: list[list[str]] = field(default_factory=list)  # of the table of systems, its header first
    signatures: list[str] = field(default_factory=list)  # each is printed once, below the table
    more: list[str] = field(default_factory=list)  # further lines below
    notes: list[str] = field(default_factory=list)  # on what lowers a score unexpectedly, for stderr
    record: dict[str, Any] = field(default_factory=dict)  # the JSON

    @property
    def lines(self) -> list[str]:
        """The lines to print."""
        return [*aligned(self.rows), *dict.fromkeys(self.signatures), *self.more]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a line for each row, in columns; all rows have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def digits(threshold: float) -> str:
    """Writes a threshold with all its digits: a rounded one may be on the other side of the score it comes from."""
    return np.format_float_positional(threshold, min_digits=2)
