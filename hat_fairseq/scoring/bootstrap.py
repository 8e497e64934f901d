"""Confidence intervals of a corpus score by resampling whole documents (Efron's percentile bootstrap)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over documents and the limits of its 95 % interval; the limits are None where no resampling was done."""

    mean: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        limits = "" if self.low is None or self.high is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.mean:.2f}{limits}"


def bootstrap_interval(values: np.ndarray, samples: int, seed: int) -> Interval:
    """Return the mean of ``values`` and its percentile interval.

    The same ``seed`` and number of values draw the same documents, so that several metrics or systems scored on one
    test set are resampled alike.

    Args:
        values: scores, one per document, shape (documents,), any unit; the result has the same unit.
        samples: number of resampled test sets; 0 for no interval.
        seed: of numpy's default generator.

    Raises:
        ValueError: no values, or a negative number of samples.
    """
    if len(values) == 0:
        raise ValueError("no documents to score")
    if samples < 0:
        raise ValueError(f"the number of bootstrap samples must not be negative: {samples}")
    mean = float(np.mean(values))
    if samples == 0:
        return Interval(mean, None, None)
    random = np.random.default_rng(seed)
    # One resampled set at a time: a (samples, documents) index would take 100 MB on CNN/DailyMail.
    means = [values[random.integers(0, len(values), len(values))].mean() for _ in range(samples)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(mean, float(low), float(high))


def bootstrap_totals(
    counts: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], samples: int, seed: int
) -> list[Interval]:
    """Return the figures that ``statistic`` makes of the test set's totals, each with its percentile interval.

    For corpus scores such as F1, which are no means over documents. The same documents are drawn as in
    ``bootstrap_interval``.

    Args:
        counts: what is added up over documents, shape (documents, M).
        statistic: from totals of shape (M,) to figures of shape (F,).
        samples, seed: as in ``bootstrap_interval``.

    Raises:
        ValueError: as ``bootstrap_interval``.
    """
    if len(counts) == 0:
        raise ValueError("no documents to score")
    if samples < 0:
        raise ValueError(f"the number of bootstrap samples must not be negative: {samples}")
    figures = statistic(counts.sum(axis=0))
    if samples == 0:
        return [Interval(float(figure), None, None) for figure in figures]
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(samples):
        times = np.bincount(random.integers(0, len(counts), len(counts)), minlength=len(counts))
        drawn.append(statistic(times @ counts))
    tail = 100 * (1 - CONFIDENCE) / 2
    limits = np.percentile(drawn, [tail, 100 - tail], axis=0).T
    return [
        Interval(float(figure), float(low), float(high)) for figure, (low, high) in zip(figures, limits, strict=True)
    ]
