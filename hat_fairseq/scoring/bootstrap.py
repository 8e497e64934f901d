"""Confidence intervals of a corpus score by resampling whole documents (Efron's percentile bootstrap)."""

from collections.abc import Callable
from dataclasses import dataclass

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
    """The figures that `statistic` makes of the test set, each with its percentile interval.

    The same `seed` and number of documents draw the same documents, so that several metrics or systems scored on one
    test set are resampled alike.

    Args:
        rows: what is known of each document, (documents, ...).
        statistic: from the rows of some documents to figures of shape (F,).
        samples: number of resampled test sets; 0 for no intervals.
        seed: of numpy's default generator.

    Raises:
        ValueError: no documents.
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


def bootstrap_mean(values: np.ndarray, samples: int, seed: int) -> Interval:
    """The mean of (documents,) values with its interval; see `bootstrap`."""
    (interval,) = bootstrap(values, lambda drawn: np.array([drawn.mean()]), samples, seed)
    return interval
