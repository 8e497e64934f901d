"""Windows of a text or of paragraphs after a question, and the characters that their tokens cover.

The characters of a text that a token covers are found by counting non-space characters. The steps before the BPE
change white space, remove control characters and put backslashes into control tokens. All other characters keep their
order, so counting works for any word tokenizer. The BPE says which characters of its input each token covers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate, pairwise

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.long_input import LongInputError, Piece, count_segments, cut_windows
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.rows import Part, Row, RowEncoder, Span, at_markers, joined, marked_pairs
from hat_fairseq.data.sentences import Sentence
from hat_fairseq.data.text import BOS_TOKEN, is_blank, split_lines

#: The tokens of a segment of a context, with the characters that they stand for, or None.
Unit = list[tuple[str, Span | None]]
# What a window of a document says to a question; `span` is a short answer, `paragraph` has the answer in no short form.
ANSWER_TYPES = ("none", "span", "paragraph", "yes", "no")
# Of windows of a text, and of paragraphs: the paper's windows of 4,096 tokens share 2,528.
MAX_OVERLAP_RATIO = {False: 1 / 2, True: 3 / 4}


def window_rows(
    encoder: RowEncoder, record: Record, question: list[str], context: Sequence[Unit], paragraphs: bool = False
) -> list[Row]:
    """Returns one row for each window of the segments of a context, the question before each.

    `question`: its tokens with markers. `paragraphs`: the segments are paragraphs, whose numbers their markers stand
    for.
    """

    def part(pieces: Sequence[Unit], numbers: Sequence[int]) -> Part:
        tokens, characters = marked_pairs(pieces)
        return Part(tokens, at_markers(pieces, numbers) if paragraphs else [], characters)

    if encoder.settings.long_source == "chunk":
        windows, before = [], joined([Part(question), Part([])]).tokens
        for window in _windows(encoder, record, before, list(map(len, context)), MAX_OVERLAP_RATIO[paragraphs]):
            pieces = [context[i][begin:end] for i, begin, end in window]
            windows.append(joined([Part(question), part(pieces, [i for i, _, _ in window])]))
    else:
        windows = [encoder.row(record, [Part(question), part(context, range(len(context)))], truncated=1)]
    return [
        Row(record.id, number, len(windows), {"source": window.tokens}, window.elements, window.characters)
        for number, window in enumerate(windows)
    ]


def _windows(
    encoder: RowEncoder, record: Record, before: Sequence[str], lengths: Sequence[int], max_overlap_ratio: float
) -> list[list[Piece]]:
    """The windows of the segments of a context after a question; LongInputError if it leaves no room.

    `max_overlap_ratio`: upper bound on the overlap of two windows, as a fraction of the tokens left for the context.
    Without it a long question would leave almost no stride.
    """
    counts, settings, limit = encoder.counts, encoder.settings, encoder.limit("source")
    max_segments, room = settings.max_segments, sum(lengths) + len(lengths)
    if limit is not None:
        room = limit - len(before)
    if max_segments is not None:
        is_bos = [token == BOS_TOKEN for token in before]
        max_segments -= int(count_segments(is_bos, settings.segment_length, following=0)[-1])
        room = min(room, max_segments * settings.segment_length - 1)
    if room < 2:
        raise LongInputError(
            f"{record.name}: windows are too small for its question of {len(before) - 2} tokens; raise "
            "--max-source-tokens or --max-segments, or remove the document"
        )
    overlap = min(settings.window_overlap, int((room - 1) * max_overlap_ratio))
    windows = cut_windows(lengths, room, overlap, max_segments, settings.segment_length)
    if len(windows) > 1:
        counts["examples_cut_into_windows"] += 1
        counts["windows"] += len(windows)
        counts["windows_with_less_overlap"] += len(windows) * (overlap < settings.window_overlap)
        counts["segments_longer_than_window"] += sum(1 + length > room for length in lengths)
    return windows


def sample_negatives(rows: list[Row], share: float, counts: Counter[str]) -> list[Row]:
    """Returns the rows with an answer and a share of the others, which depends only on id and number of a row."""
    negative = [row.label is not None and set(row.label) <= {"0", ANSWER_TYPES[0]} for row in rows]
    remaining = [row for row, drop in zip(rows, negative, strict=True) if not drop or _chance(row) < share]
    counts["windows_without_answer"] += sum(negative)
    counts["windows_without_answer_dropped"] += len(rows) - len(remaining)
    return [replace(row, number=number, count=len(remaining)) for number, row in enumerate(remaining)]


def _chance(row: Row) -> float:
    """Draws a number in [0, 1) from a row's id and number."""
    digest = sha256(f"{row.id}\t{row.number}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / 2**64


def as_given(text: Text) -> str:
    """Returns running text as it is, elements with line breaks between them."""
    return text if isinstance(text, str) else "\n".join(text)


def kept_characters(text: Text, line_breaks: str = "space") -> list[int]:
    """Returns the positions in the raw text of the characters that are left of it, white space left out.

    These are the characters that `text.normalise` keeps, of all elements, or of all pieces of running text between the
    line breaks that end a sentence, but of none that shows nothing: such a piece is dropped.
    """
    raw, end, positions = as_given(text), 0, list[int]()
    for piece in split_lines(text, line_breaks) if isinstance(text, str) else text:
        if not is_blank(piece):  # between two others there is nothing but what is not visible, so this finds it
            begin = raw.index(piece, end)
            end = begin + len(piece)
            positions += [
                begin + index
                for index, character in enumerate(piece)
                if not (character.isspace() or character < " " or "\x7f" <= character <= "\x9f")
            ]
    return positions


def places_of(texts: Iterable[str], positions: Sequence[int]) -> list[Span]:
    """Finds the characters of each normalised text, without the white space at its ends.

    `positions`: `kept_characters` of the raw text, whose sentences or elements these are.
    """
    ends = accumulate((len(text.replace(" ", "")) for text in texts), initial=0)
    return [(positions[begin], positions[end - 1] + 1) for begin, end in pairwise(ends)]


def units_with_characters(
    sentences: Sequence[Sentence], units_of_tokens: Sequence[list[str]], positions: Sequence[int], bpe: Bpe
) -> list[Unit]:
    """Returns the tokens of sentences with the characters of the raw text that they stand for; None for spaces only.

    `units_of_tokens`: the tokens of each sentence. `positions`: `kept_characters` of the raw text, whose sentences
    these are.
    """
    units: list[Unit] = []
    before = 0  # characters in the sentences so far
    for (text, words), tokens in zip(sentences, units_of_tokens, strict=True):
        letters = text.replace(" ", "")
        origin = _unescaped(words.replace(" ", ""), letters)
        spans = [
            (positions[before + origin[begin]], positions[before + origin[end - 1]] + 1) if begin < end else None
            for begin, end in bpe.extents(tokens, words)
        ]
        units.append(list(zip(tokens, spans, strict=True)))
        before += len(letters)
    assert before == len(positions), (before, len(positions))
    return units


def _unescaped(escaped: str, text: str) -> list[int]:
    """For each character of `escaped` its place in `text`; an added backslash has that of the one after it."""
    origin = []
    place = 0
    for character in escaped:
        origin.append(place)
        place += character == text[place]
    assert place == len(text), (escaped, text)
    return origin


def characters_of(begin: int, end: int, positions: Sequence[int]) -> Span | None:
    """Returns the characters of an answer without those at its ends that belong to no token; None if none is left."""
    inside = [position for position in positions if begin <= position < end]
    return (inside[0], inside[-1] + 1) if inside else None


def find_span(spans: Sequence[Span | None], begin: int, end: int) -> tuple[int, int] | None:
    """Returns first and last token (inclusive) of the characters `begin` to `end`; None if not all are there.

    `spans`: of the tokens of a row, increasing; tokens stand for the characters `begin` and `end - 1`.
    """
    first = next((i for i, span in enumerate(spans) if span and span[0] <= begin < span[1]), None)
    last = [i for i, span in enumerate(spans) if span and span[0] < end <= span[1]]
    return (first, last[-1]) if first is not None and last else None


def covered(row: Row, first: int, last: int) -> Span:
    """Returns the characters that the tokens of an answer stand for, both inclusive."""
    begin, end = row.characters[first], row.characters[last]
    assert begin is not None and end is not None, (first, last)
    return begin[0], end[1]
