"""The characters of a text that each token covers, found by counting non-space characters.

The steps before the BPE change white space, remove control characters and put backslashes into control tokens. All
other characters keep their order, so counting works for any word tokenizer. The BPE says which characters of its input
each token covers.
"""

from collections.abc import Sequence

from hat_fairseq.data.bpe import Bpe

Span = tuple[int, int]  # characters, begin inclusive, end exclusive


def kept_characters(text: str) -> list[int]:
    """Positions of the characters of a raw text that `text.normalise` keeps, white space left out."""
    return [index for index, character in enumerate(text) if not _dropped(character)]


def token_spans(
    sentences: Sequence[str], ready: Sequence[str], pieces: Sequence[list[str]], positions: Sequence[int], bpe: Bpe
) -> list[list[Span | None]]:
    """The span of each token in the raw text, for each sentence; None for a token that stands for spaces only.

    Args:
        sentences: of the whole text, normalised.
        ready: the same, with escaped control tokens and words separated.
        pieces: BPE tokens of each.
        positions: see `kept_characters`; as many as the sentences have characters that are no spaces.
    """
    spans: list[list[Span | None]] = []
    before = 0  # characters in the sentences so far
    for sentence, text, tokens in zip(sentences, ready, pieces, strict=True):
        letters = sentence.replace(" ", "")
        origin = _unescaped(text.replace(" ", ""), letters)
        row: list[Span | None] = []
        for begin, end in bpe.extents(tokens, text):
            if begin == end:
                row.append(None)
            else:
                row.append((positions[before + origin[begin]], positions[before + origin[end - 1]] + 1))
        spans.append(row)
        before += len(letters)
    assert before == len(positions), (before, len(positions))
    return spans


def find_span(spans: Sequence[Span | None], begin: int, end: int) -> tuple[int, int] | None:
    """First and last token (inclusive) that stand for the characters `begin` to `end`; None if not all are there.

    `spans`: of the tokens of a row, increasing; tokens stand for the characters `begin` and `end - 1`.
    """
    first = next((i for i, span in enumerate(spans) if span and span[0] <= begin < span[1]), None)
    if first is None:
        return None
    last = None
    for index in range(first, len(spans)):
        span = spans[index]
        if span and span[0] >= end:
            break
        if span and span[0] < end <= span[1]:
            last = index
    return None if last is None else (first, last)


def _dropped(character: str) -> bool:
    return character.isspace() or character < " " or "\x7f" <= character <= "\x9f"


def _unescaped(escaped: str, text: str) -> list[int]:
    """For each character of `escaped` its place in `text`; an added backslash has that of the one after it."""
    origin = []
    place = 0
    for character in escaped:
        origin.append(place)
        if character == text[place]:
            place += 1
    assert place == len(text), (escaped, text)
    return origin
