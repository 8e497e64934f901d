"""What a metric says about the systems that it scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Report:
    """Lines to print (tables, then signatures), notes on what lowers a score unexpectedly, and the JSON of --json."""

    lines: list[str]
    notes: list[str]
    record: Any


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, in columns; all rows have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def digits(threshold: float) -> str:
    """A threshold with all its digits: a rounded one may be on the other side of the score that it comes from."""
    return np.format_float_positional(threshold, min_digits=2)
