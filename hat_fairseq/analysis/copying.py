"""Finds the sentences of a source that an output copies, by the words that they share.

Rohde et al. 2021, section 6, find them as lines in heat maps of the attention. Words show them without the model.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..data.language import words_of

LEAST = 5  # words in a row that are called copied


@dataclass(frozen=True)
class Copy:
    """A sentence of an output, and the unit of the source with which it shares the longest run of `words`."""

    sentence: int
    unit: int
    words: int


def copies(sentences: Sequence[str], source: Sequence[str]) -> list[Copy]:
    """Returns the copy of each sentence that shares a run of at least `LEAST` words with a unit of the source.

    Words are compared in lower case, without punctuation. Of several units with a run as long, the first one counts.
    """
    units, places = [words_of(text) for text in source], defaultdict[tuple[str, ...], set[int]](set)
    for number, words in enumerate(units):
        for run in _runs(words):
            places[run].add(number)
    result = []
    for number, words in enumerate(map(words_of, sentences)):
        candidates = sorted(set().union(*(places[run] for run in _runs(words) if run in places)))
        sizes = [
            SequenceMatcher(None, words, units[unit], autojunk=False).find_longest_match().size for unit in candidates
        ]
        if sizes:
            most = max(sizes)
            result.append(Copy(number, candidates[sizes.index(most)], most))
    return result


def _runs(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[first : first + LEAST]) for first in range(len(words) - LEAST + 1)]
