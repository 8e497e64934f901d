"""Source and target segments of a document that should correspond one to one, and what to do when they do not.

`error`  refuse
`drop`   drop the document (numbers of segments differ) or the pair (one side is empty)
`merge`  keep all text: the document becomes a single pair, or the text joins the previous segment (the first
           segment joins the next one)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hat_fairseq.data.text import normalise
from hat_fairseq.data.word_tokenizer import count_words, join_sentences

if TYPE_CHECKING:
    from hat_fairseq.data.kinds.documents import Document

POLICIES = ("error", "drop", "merge")
ADVICE = "correct it, or choose --on-misaligned drop or --on-misaligned merge"

Pair = tuple[str, str]
Languages = tuple[str, str]  # of source and target


class MisalignedError(ValueError):
    """Source and target have different numbers of segments, or a segment has no counterpart."""


def align(document: Document, policy: str, languages: Languages, counts: Counter[str]) -> Document:
    """Normalise both sides and pair them: as many source as target segments, none of them empty.

    A document with nothing on a whole side is returned as it is: it is empty, not misaligned. MisalignedError if the
    numbers of segments differ and the policy is not `merge`, or one side of a pair is empty and the policy is `error`.
    """
    source = [normalise(segment, counts) for segment in document.sentences or ()]
    target = [normalise(segment, counts) for segment in document.target or ()]
    if not any(source) or not any(target):
        return document
    sizes = f"{document.name}: {len(source)} source and {len(target)} target segments"
    pairs = list(zip(source, target, strict=False))
    if len(source) != len(target):
        if policy != "merge":
            raise MisalignedError(f"{sizes}; {ADVICE}")
        counts["documents_misaligned_merged"] += 1
        pairs = [(join_sentences(source, languages[0]), join_sentences(target, languages[1]))]
    whole = list(filter(all, pairs))
    one_sided = [index for index, pair in enumerate(pairs) if any(pair) and not all(pair)]
    counts["segment_pairs_empty"] += len(pairs) - len(whole) - len(one_sided)
    if one_sided and policy == "merge":
        counts["segment_pairs_one_sided_merged"] += len(one_sided)
        whole = _merged(pairs, languages)
    elif one_sided:
        if policy == "error" or not whole:  # without a whole pair nothing would be left
            number, side = one_sided[0] + 1, "target" if pairs[one_sided[0]][0] else "source"
            raise MisalignedError(f"{sizes}, segment {number} has an empty {side}; {ADVICE}")
        counts["segment_pairs_one_sided_dropped"] += len(one_sided)
        sources, targets = zip(*(pairs[index] for index in one_sided), strict=True)
        counts.update(dropped_words(sources, targets, languages))
    sources, targets = zip(*whole, strict=True)
    return document.with_sentences(sources, None, targets)


def dropped_words(source: Iterable[str], target: Iterable[str], languages: Languages) -> Counter[str]:
    """Counts the words of dropped segments: `source_words_dropped` and `target_words_dropped`."""
    words = [sum(count_words(t, code) for t in side) for side, code in zip((source, target), languages, strict=True)]
    return Counter(source_words_dropped=words[0], target_words_dropped=words[1])


def _merged(pairs: list[Pair], languages: Languages) -> list[Pair]:
    merged: list[Pair] = []
    for pair in filter(any, pairs):
        if merged and not (all(pair) and all(merged[-1])):  # one of the two still lacks a side
            source, target = zip(merged.pop(), pair, strict=True)
            pair = join_sentences(source, languages[0]), join_sentences(target, languages[1])
        merged.append(pair)
    return merged
