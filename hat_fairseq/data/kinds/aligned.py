"""Aligned documents: source and target segments that correspond one to one, or what is done if they do not.

`error`  refuse
`drop`   drop the document (numbers of segments differ) or the pair (one side is empty)
`merge`  keep all text: the document becomes a single pair, or the text joins the previous segment (the first
           segment joins the next one)
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from hat_fairseq.data.text import count_words, join_sentences

Pair = tuple[str, str]
Languages = tuple[str, str]  # of source and target
_ADVICE = "correct it, or choose --on-misaligned drop or --on-misaligned merge"


class MisalignedError(ValueError):
    """Source and target have different numbers of segments, or a segment has no counterpart."""


def align(
    name: str, source: Sequence[str], target: Sequence[str], policy: str, languages: Languages, counts: Counter[str]
) -> list[Pair]:
    """Pairs normalised segments of a document: as many source as target segments, none of them empty.

    Args:
        name: of the document, for messages.
        source, target: normalised segments, of which one at least on each side is not empty.
        policy: one of `options.ON_MISALIGNED`.
        counts: takes what is dropped or merged.
    Raises:
        MisalignedError: the numbers of segments differ and the policy is not `merge`, or one side of a pair is empty
            and the policy is `error`, or no pair is left.
    """
    sizes = f"{name}: {len(source)} source and {len(target)} target segments"
    pairs = list(zip(source, target, strict=False))
    if len(source) != len(target):
        if policy != "merge":
            raise MisalignedError(f"{sizes}; {_ADVICE}")
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
            raise MisalignedError(f"{sizes}, segment {number} has an empty {side}; {_ADVICE}")
        counts["segment_pairs_one_sided_dropped"] += len(one_sided)
        sources, targets = zip(*(pairs[index] for index in one_sided), strict=True)
        counts.update(dropped_words(sources, targets, languages))
    return whole


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
