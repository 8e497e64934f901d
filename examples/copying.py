#!/usr/bin/env python3
"""Print the sentences of generated texts that copy a run of words from their documents, as JSON lines.

    python examples/copying.py data-bin/mine/text/test.jsonl results/mine/test.jsonl

Rohde et al. 2021, section 6, find them as lines in heat maps of the attention. Words show them without the model.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher

from hat_fairseq.data.language import words_of
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts
from hat_fairseq.scoring.rouge import split_summary

LEAST = 5  # words in a row that are called copied


def main(documents: str, generated: str) -> None:
    texts = read_texts(generated, HYPOTHESIS_KEYS)
    by_id = dict(zip(texts.ids or (), texts.texts, strict=True))
    for document in read_records(documents):
        if document.id in by_id:
            sentences = split_summary(by_id[document.id][0], "punctuation")
            for copy in copies(sentences, document.elements or ()):
                print(json.dumps({"id": document.id, **asdict(copy)}))


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


if __name__ == "__main__":
    main(*sys.argv[1:])
