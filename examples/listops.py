"""ListOps expressions: `[MAX 2 9 [MIN 4 7 ] 0 ]` is 9 (Nangia and Bowman 2018), as Long Range Arena draws them.

A node is an operator with the probability 0.25, else a digit; below the greatest depth all nodes are digits. Operators
are MIN, MAX, MED (the median, rounded down) and SM (the sum modulo 10), and have 2 to `max_args` arguments. Depth,
arguments, lengths and probabilities are those of the published generator (Tay et al. 2021). It draws a tree node by
node; here the nodes of many trees are drawn and evaluated level by level, so a seed gives other expressions of the same
distribution. The published files also have parentheses, which every reader removes.

Legend: n nodes of one level, in the order of their parents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
END = "]"
SYMBOLS = np.array([*map(str, range(10)), *OPERATORS, END])
MIN, MAX, MED, SM = range(10, 14)
OPERATOR_SHARE = 0.25
TREES = 4096  # drawn at once; most of them are too short
PATIENCE = 200  # draws of `TREES` trees without a new expression

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
    """Limits of an expression; its length, of operators, digits and closing brackets, lies strictly between two."""

    min_length: int = 500
    max_length: int = 2000
    max_depth: int = 10
    max_args: int = 10


@dataclass(frozen=True)
class Level:
    """The nodes of one depth: tree (n,), number of the symbol (n,), number of arguments (n,), 0 for digits."""

    tree: Ints
    symbol: Ints
    args: Ints

    def of(self, trees: NDArray[np.bool_]) -> "Level":
        """Return the nodes of some trees."""
        nodes = trees[self.tree]
        return Level(self.tree[nodes], self.symbol[nodes], self.args[nodes])

    def starts(self) -> Ints:
        """Return the first child of each operator, by its place in the next level."""
        args = self.args[self.args > 0]
        return np.cumsum(args) - args


def expressions(rng: np.random.Generator, limits: Limits) -> Iterator[tuple[str, int]]:
    """Yield different expressions and their values; ValueError if `PATIENCE` draws give no new one."""
    seen: set[bytes] = set()
    missed = 0
    while missed < PATIENCE:
        missed += 1
        levels = _draw(rng, limits)
        lengths = np.sum([np.bincount(level.tree, 1 + (level.args > 0), TREES) for level in levels], axis=0)
        fitting = (lengths > limits.min_length) & (lengths < limits.max_length)
        if not fitting.any():
            continue
        levels = [level.of(fitting) for level in levels]
        values, sizes = _evaluate([level for level in levels if len(level.tree)])
        for text, value in zip(_texts(levels, sizes), values[0].tolist(), strict=True):
            if (digest := blake2b(text.encode(), digest_size=16).digest()) not in seen:
                seen.add(digest)
                missed = 0
                yield text, value
    raise ValueError(
        f"--lengths {limits.min_length} {limits.max_length}: only {len(seen)} different expressions were found; allow "
        "other lengths, or ask for fewer with --sizes"
    )


def _draw(rng: np.random.Generator, limits: Limits) -> list[Level]:
    levels, tree = [], np.arange(TREES)
    for depth in range(1, limits.max_depth + 1):
        n = len(tree)
        operators = rng.random(n) < (OPERATOR_SHARE if depth < limits.max_depth else 0)
        symbol = np.where(operators, rng.integers(MIN, SM + 1, n), rng.integers(0, 10, n))
        args = np.where(operators, rng.integers(2, limits.max_args + 1, n), 0)
        levels.append(Level(tree, symbol, args))
        tree = np.repeat(tree, args)
    return levels


def _evaluate(levels: list[Level]) -> tuple[list[Ints], list[Ints]]:
    """Compute the value and the length of the expression below each node, level by level."""
    values: list[Ints] = []
    sizes: list[Ints] = []
    for level in reversed(levels):
        operators, value, size = level.args > 0, level.symbol.copy(), np.ones_like(level.symbol)
        if operators.any():
            starts = level.starts()
            value[operators] = _apply(level.symbol[operators], values[0], starts, level.args[operators])
            size[operators] = 2 + np.add.reduceat(sizes[0], starts)
        values.insert(0, value)
        sizes.insert(0, size)
    return values, sizes


def _apply(operator: Ints, arguments: Ints, starts: Ints, args: Ints) -> Ints:
    """Compute the values of operators; `arguments` are those of all, one after the other."""
    order = np.lexsort((arguments, np.repeat(np.arange(len(args)), args)))
    ordered = arguments[order]
    median = (ordered[starts + (args - 1) // 2] + ordered[starts + args // 2]) // 2
    results = [ordered[starts], ordered[starts + args - 1], median, np.add.reduceat(arguments, starts) % 10]
    return np.select([operator == which for which in (MIN, MAX, MED, SM)], results)


def _texts(levels: list[Level], sizes: list[Ints]) -> Iterator[str]:
    """Yield the expressions in writing: an operator, its arguments, and the closing bracket."""
    begin = np.cumsum(sizes[0]) - sizes[0]
    tokens: Ints = np.full(int(sizes[0].sum()), len(SYMBOLS) - 1)
    ends = begin + sizes[0]
    for level, next_sizes in zip(levels, [*sizes[1:], np.zeros(0, dtype=int)], strict=False):
        tokens[begin] = level.symbol
        before = np.cumsum(next_sizes) - next_sizes  # of all nodes of the next level
        first = np.repeat(before[level.starts()], level.args[level.args > 0]) if len(before) else before
        begin = np.repeat(begin + 1, level.args) + before - first
    words = SYMBOLS[tokens].tolist()
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield " ".join(words[start:end])
