"""Three baselines of ListOps, which do not read nested expressions.

The best constant; the operator of the root; and this operator with its own digits: `[MAX 2 [MIN 4 7 ] 0 ]` is read as
`[MAX 2 0 ]`. Each baseline predicts the most frequent value of the training expressions that look alike.
"""

from collections import Counter, defaultdict

import numpy as np

from .listops import FUNCTIONS

BASELINES = ("constant", "root operator", "root operator and its digits")


class Baselines:
    """The baselines, fitted on one training expression after the other."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[object, ...], Counter[int]] = defaultdict(Counter)

    def learn(self, text: str, value: int) -> None:
        for view in _views(text):
            self.counts[view][value] += 1

    def right(self, text: str, value: int) -> list[str]:
        """The names of the baselines that predict this value."""
        counts = [self.counts.get(view) or self.counts[()] for view in _views(text)]
        return [name for name, seen in zip(BASELINES, counts, strict=True) if seen.most_common(1)[0][0] == value]


def _views(text: str) -> list[tuple[object, ...]]:
    """What each baseline reads: nothing, the operator, and the operator with its value for its own digits."""
    root = text.split(maxsplit=1)[0]
    characters = np.frombuffer(text.encode(), dtype=np.uint8)
    depths = np.cumsum((characters == ord("[")).astype(int) - (characters == ord("]")))
    digits = characters[(depths == 1) & (characters >= ord("0")) & (characters <= ord("9"))].astype(int) - ord("0")
    return [(), (root,), (root, FUNCTIONS[root](digits.tolist()) if len(digits) else None)]
