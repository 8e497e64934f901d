"""Windows of a text or of paragraphs behind a question, their labels, and the characters that their tokens cover.

The characters of a text that a token covers are found by counting non-space characters. The steps before the BPE
change white space, remove control characters and put backslashes into control tokens. All other characters keep their
order, so counting works for any word tokenizer. The BPE says which characters of its input each token covers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.labels import ANSWER_TYPES
from hat_fairseq.data.long_input import LongInputError, count_segments
from hat_fairseq.data.packing import Piece, cut_windows
from hat_fairseq.data.record import Annotation, Answer, Record
from hat_fairseq.data.row_encoder import PART_SEPARATOR, RowEncoder
from hat_fairseq.data.rows import BOS, Row, Unit, marked, tokens_of

Span = tuple[int, int]  # characters, begin inclusive, end exclusive
NO_ANSWER = ["0", "0"]  # the label of a window of a text
NO_LABEL = [*NO_ANSWER, "0", ANSWER_TYPES[0]]  # of a window of paragraphs
# Of windows of a text, and of paragraphs: the paper's windows of 4,096 tokens share 2,528.
MAX_OVERLAP_RATIO = {False: 1 / 2, True: 3 / 4}


def window_rows(
    encoder: RowEncoder, record: Record, question: Unit, context: Sequence[Unit], paragraphs: bool = False
) -> list[Row]:
    """Returns one row for each window of the segments of a context, the question before each.

    `paragraphs`: the segments are paragraphs, whose numbers their markers stand for.
    """
    references = list(range(len(context))) if paragraphs else [None] * len(context)
    if encoder.settings.long_source == "chunk":
        windows, before = [], [*question, *PART_SEPARATOR]
        for window in windows_of(encoder, record, before, list(map(len, context)), MAX_OVERLAP_RATIO[paragraphs]):
            pieces = [context[i][begin:end] for i, begin, end in window]
            windows.append([*before, *marked(pieces, [references[i] for i, _, _ in window])])
    else:
        windows = [encoder.row(record, [question, marked(context, references)], truncated=1)]
    elements = len(context) if paragraphs else len(record.text or "")
    return [
        Row(record.id, number, len(windows), {"source": tokens_of(pairs)}, [span for _, span in pairs], elements)
        for number, pairs in enumerate(windows)
    ]


def windows_of(
    encoder: RowEncoder, record: Record, before: Unit, lengths: Sequence[int], max_overlap_ratio: float
) -> list[list[Piece]]:
    """Returns the windows of the segments of a context behind a question; LongInputError if it leaves no room.

    `max_overlap_ratio`: upper bound on the overlap of two windows, as a fraction of the tokens left for the context.
    Without it a long question would leave almost no stride.
    """
    counts, settings, limit = encoder.counts, encoder.settings, encoder.limit("source")
    max_segments, room = settings.max_segments, sum(lengths) + len(lengths)
    if limit is not None:
        room = limit - len(before)
    if max_segments is not None:
        is_bos = [token == BOS for token, _ in before]
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
    """Keeps the rows with an answer and a share of the others, which depends on nothing but id and number of a row."""
    negative = [row.label is not None and set(row.label) <= {"0", ANSWER_TYPES[0]} for row in rows]
    remaining = [row for row, drop in zip(rows, negative, strict=True) if not drop or _chance(row) < share]
    counts["windows_without_answer"] += sum(negative)
    counts["windows_without_answer_dropped"] += len(rows) - len(remaining)
    return [replace(row, part=number, num_parts=len(remaining)) for number, row in enumerate(remaining)]


def _chance(row: Row) -> float:
    """Draws a number in [0, 1) from a row's id and number."""
    digest = sha256(f"{row.id}\t{row.part}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / 2**64


def label_answers(answers: Sequence[Answer], positions: Sequence[int], rows: list[Row], counts: Counter[str]) -> None:
    """Label each row with the answers that are wholly in it, each place once and in the order given, else `0 0`.

    Positions count tokens of the row from 0, both inclusive. Counts answers that no token stands for
    (`answers_not_found`), that are cut off or longer than what two windows share (`answers_in_no_row`), and rows in
    which the first or the last token stands for more than the answer (`answers_inside_tokens`).
    """
    places = (characters_of(answer.start, answer.end, positions) for answer in answers)
    wanted = [span for span in places if span is not None]
    counts["answers_not_found"] += len(answers) - len(wanted)
    by_row = [[find_span(row.spans, *span) for span in wanted] for row in rows]
    counts["answers_in_no_row"] += sum(not any(in_row) for in_row in zip(*by_row, strict=True))
    if answers and not any(span for in_row in by_row for span in in_row):
        counts["examples_left_without_answer"] += 1
    for row, in_row in zip(rows, by_row, strict=True):
        pairs = {tokens: characters for tokens, characters in zip(in_row, wanted, strict=True) if tokens}
        counts["answers_inside_tokens"] += any(
            (row.spans[first][0], row.spans[last][1]) != characters for (first, last), characters in pairs.items()
        )
        row.streams["label"] = [str(place) for tokens in pairs for place in tokens] or NO_ANSWER


def label_paragraphs(
    annotation: Annotation,
    positions: Sequence[Sequence[int]],
    context: Sequence[Unit],
    rows: Sequence[Row],
    counts: Counter[str],
) -> None:
    """Label the rows that have the answer, and all others with `NO_LABEL`.

    A row has a short answer, from the start of its first span to the end of its last one, if all of it is there; a
    paragraph without short answer likewise, but if no row has all of it, each row with a piece of it.
    """
    for row in rows:
        row.streams["label"] = NO_LABEL
    number = annotation.paragraph
    if number is None:
        return
    places = [_place(row, number) for row in rows]
    if annotation.spans:
        begin, end = min(span.start for span in annotation.spans), max(span.end for span in annotation.spans)
        wanted = characters_of(begin, end, positions[number])
        counts["answers_not_found"] += wanted is None
        for row, (marker, tokens) in zip(rows, places, strict=True):
            span = find_span(row.spans[tokens], *wanted) if wanted and marker else None
            if wanted and span:
                first, last = (tokens.start + token for token in span)
                counts["answers_inside_tokens"] += (row.spans[first][0], row.spans[last][1]) != wanted
                row.streams["label"] = [str(first), str(last), str(marker), "span"]
    else:
        longest = max(tokens.stop - tokens.start for _, tokens in places)
        least = len(context[number]) if longest == len(context[number]) else 1
        for row, (marker, tokens) in zip(rows, places, strict=True):
            if marker and tokens.stop - tokens.start >= least:
                row.streams["label"] = [*NO_ANSWER, str(marker), annotation.yes_no or "paragraph"]
    counts["examples_left_without_answer"] += all(row.label == NO_LABEL for row in rows)


def _place(row: Row, paragraph: int) -> tuple[int, slice]:
    """Number of a paragraph's marker in a row, 0 if it is not there; and where its tokens are."""
    markers = [place for place, span in enumerate(row.spans) if isinstance(span, int)]
    for number, place in enumerate(markers, start=1):
        if row.spans[place] == paragraph:
            return number, slice(place + 1, markers[number] if number < len(markers) else len(row.spans))
    return 0, slice(0, 0)


def characters_of(begin: int, end: int, positions: Sequence[int]) -> Span | None:
    """Returns the characters of an answer without those at its ends that belong to no token; None if none is left."""
    inside = [position for position in positions if begin <= position < end]
    return (inside[0], inside[-1] + 1) if inside else None


def kept_characters(text: str) -> list[int]:
    """Returns the positions of the characters of a raw text that `text.normalise` keeps, white space left out."""
    return [index for index, character in enumerate(text) if not _dropped(character)]


def token_spans(
    sentences: Sequence[str], ready: Sequence[str], pieces: Sequence[list[str]], positions: Sequence[int], bpe: Bpe
) -> list[list[Span | None]]:
    """Returns the span of each token in the raw text, for each sentence; None for a token that stands for spaces only.

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
