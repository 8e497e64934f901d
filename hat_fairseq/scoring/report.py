"""Reports of metrics: intervals by resampling documents (Efron's percentile bootstrap), signatures, and tables."""

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hat_fairseq.printed import aligned

_warn_once = functools.cache(logging.getLogger(__name__).warning)


@dataclass(frozen=True)
class Interval:
    """A score of the test set and the limits of its 95 % interval, None without resampling or of one document."""

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
    test set are resampled alike. One document has no interval: every resampled test set would be the same.

    Args:
        rows: what is known of each document, (documents, ...); a ValueError if there are none.
        statistic: from the rows of some documents to figures of shape (F,).
        samples: number of resampled test sets; 0 for no intervals.
    """
    if len(rows) == 0:
        raise ValueError("no documents to score")
    figures = statistic(rows).tolist()
    if samples == 0 or is_alone(len(rows)):
        return [Interval(figure) for figure in figures]
    random = np.random.default_rng(seed)
    # One resampled set at a time: a (samples, documents) index would take 100 MB on CNN/DailyMail.
    drawn = [statistic(rows[random.integers(0, len(rows), len(rows))]) for _ in range(samples)]
    limits = np.percentile(drawn, [2.5, 97.5], axis=0).T.tolist()
    return [Interval(figure, *pair) for figure, pair in zip(figures, limits, strict=True)]


def is_alone(rows: int) -> bool:
    """Tells whether there is one document (or question) only, and warns that resampling cannot tell how sure it is."""
    if rows == 1:
        _warn_once("only one document or question is scored, so there is no interval: score more of them")
    return rows == 1


def least_p_value(different: int) -> float:
    """Returns the least two-sided p-value that so many documents with different outputs can carry: 2^(1 - documents).

    If two systems are equal, each document might as well have their outputs exchanged; the difference is then as great
    as it is in at least two of the 2^documents ways to do so.
    """
    return min(1.0, 2.0 ** (1 - different))


def bootstrap_mean(values: np.ndarray, samples: int, seed: int) -> Interval:
    """Computes the mean of (documents,) values with its interval; see `bootstrap`."""
    (interval,) = bootstrap(values, lambda drawn: drawn.mean(keepdims=True), samples, seed)
    return interval


def resampling(samples: int, seed: object, unit: str = "") -> str:
    """Describes the resampling, for a signature; `unit`: what is drawn."""
    return f"{samples}{unit and f' of {unit}'} (95 %, seed {seed})" if samples else "none"


@dataclass(frozen=True)
class Signature:
    """The settings that a score depends on, by name: only scores with the same signature are comparable.

    `str` of it is the line that `hat score` prints. `title`: what is scored, where the settings do not say it.
    """

    settings: dict[str, str]
    title: str = ""

    def __str__(self) -> str:
        return " | ".join(
            [*[self.title] * bool(self.title), *(f"{name}: {value}" for name, value in self.settings.items())]
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The scores of one system by name (x 100; counts as they are), and their signature."""

    scores: dict[str, Any]
    signature: Signature

    def __str__(self) -> str:
        return "\n".join(
            [*aligned([[name, written(name, score)] for name, score in self.scores.items()]), str(self.signature)]
        )

    def to_json(self) -> dict[str, Any]:
        """Returns all that is known as a JSON object, with the signature as one string."""
        return asdict(self) | {"signature": str(self.signature)}


def check_counts(**documents: Sequence[Any] | None) -> None:
    """Raises ValueError for arguments of different lengths (None is not stated), a text among them, or no documents."""
    stated = {name: values for name, values in documents.items() if values is not None}
    for name, values in stated.items():
        if isinstance(values, str):
            raise ValueError(f"{name} is one text: give a list with an item for each document")
    counts = {name: len(values) for name, values in stated.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"not as many of each: {', '.join(f'{count} {name}' for name, count in counts.items())}")
    if not all(counts.values()):
        raise ValueError("no documents to score")


def check_choices(**settings: tuple[Any, Sequence[str]]) -> None:
    """Raises ValueError for a setting, given with its choices, that is none of them."""
    for name, (value, choices) in settings.items():
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


@dataclass(frozen=True)
class Output:
    """What `hat score` prints of all systems and writes to the file of --out."""

    rows: list[list[str]] = field(default_factory=list)  # of the table of systems, its header first
    signatures: list[str] = field(default_factory=list)  # each is printed once, below the table
    more: list[str] = field(default_factory=list)  # further lines below
    notes: list[str] = field(default_factory=list)  # on what lowers a score unexpectedly, for stderr
    record: dict[str, Any] = field(default_factory=dict)  # the JSON

    @property
    def lines(self) -> list[str]:
        """Returns the lines to print."""
        return [*aligned(self.rows), *dict.fromkeys(self.signatures), *self.more]


def digits(threshold: float) -> str:
    """Writes a threshold with all its digits: a rounded one may be on the other side of the score it comes from."""
    return np.format_float_positional(threshold, min_digits=2)


def written(name: str, score: Any) -> str:
    """Writes a score with two digits, a count as it is, and a threshold (`..._thresh`) with all its digits."""
    if isinstance(score, float):
        return digits(score) if name.endswith("thresh") else f"{score:.2f}"
    return str(score)
