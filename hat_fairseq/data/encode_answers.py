"""From a question on a text to rows, windows of the text, and from its answers to positions in these rows."""

from collections import Counter
from collections.abc import Sequence

from hat_fairseq.data.encoder import BETWEEN, Encoder
from hat_fairseq.data.long_input import LongInputError
from hat_fairseq.data.packing import cut_windows
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.rows import Row, Unit, marked, tokens_of
from hat_fairseq.data.token_spans import Span, find_span, kept_characters, token_spans

NO_ANSWER = ["0", "0"]


def encode_question(encoder: Encoder, record: Record) -> list[Row]:
    """One row for each window of the text, the question before each; the label is `START END`.

    Raises:
        LongInputError: the question leaves no room for the text, or all is too long and the policy is `error`.
    """
    question = encoder.segments(record, 0, record.parts[0])
    text = record.text
    assert text is not None  # as the kind demands
    positions = kept_characters(text)

    def refer(sentences: list[str], ready: list[str], pieces: list[list[str]]) -> list[list[Span | None]]:
        return token_spans(sentences, ready, pieces, positions, encoder.bpe)

    context = encoder.segments(record, 1, text, refer)
    limit = encoder.source_limit
    if encoder.settings.long_source == "chunk" and limit is not None:
        before = [*marked(question), *BETWEEN]
        if (room := limit - len(before)) < 2:
            raise LongInputError(
                f"{record.name}: windows of {limit + 1} tokens are too small for its question of {len(before) - 2}; "
                "raise --max-source-tokens, or remove the document"
            )
        windows = [before + window for window in _windows(encoder, context, room)]
    else:
        windows = [encoder.row(record, [question, context])]
    rows = [
        Row(record.id, number, len(windows), {"source": tokens_of(pairs)}, [span for _, span in pairs], len(text))
        for number, pairs in enumerate(windows)
    ]
    if record.answers is not None:
        _label_answers(record.answers, positions, rows, encoder.counts)
    return rows


def _windows(encoder: Encoder, context: Sequence[Unit], room: int) -> list[Unit]:
    lengths, counts = list(map(len, context)), encoder.counts
    wanted = encoder.settings.window_overlap
    overlap = min(wanted, (room - 1) // 2)  # beside a long question, windows would hardly move with the whole overlap
    windows = cut_windows(lengths, room, overlap)
    if len(windows) > 1:
        counts["examples_cut_into_windows"] += 1
        counts["windows"] += len(windows)
        counts["windows_with_less_overlap"] += len(windows) * (overlap < wanted)
        counts["segments_longer_than_window"] += sum(1 + length > room for length in lengths)
    return [marked([context[index][begin:end] for index, begin, end in window]) for window in windows]


def _label_answers(
    answers: Sequence[Answer], positions: Sequence[int], rows: Sequence[Row], counts: Counter[str]
) -> None:
    """Label each row with the first answer that is wholly in it, else `0 0`.

    Positions count tokens of the row from 0, both inclusive.

    Adds to `counts`: `answers_not_found` (no token stands for them), `answers_in_no_row` (cut off, or longer than what
    two windows share), `examples_left_without_answer` (they had some, and no row has one), and `answers_inside_tokens`
    (rows in which the first or the last token stands for more than the answer).
    """
    wanted = [span for answer in answers if (span := _characters(answer, positions)) is not None]
    counts["answers_not_found"] += len(answers) - len(wanted)
    found = [[find_span(row.spans, *span) for span in wanted] for row in rows]
    counts["answers_in_no_row"] += sum(not any(in_row) for in_row in zip(*found, strict=True))
    if answers and not any(span for in_row in found for span in in_row):
        counts["examples_left_without_answer"] += 1
    for row, in_row in zip(rows, found, strict=True):
        tokens, characters = next((pair for pair in zip(in_row, wanted, strict=True) if pair[0]), (None, None))
        if tokens is not None:
            counts["answers_inside_tokens"] += (row.spans[tokens[0]][0], row.spans[tokens[1]][1]) != characters
        row.streams["label"] = NO_ANSWER if tokens is None else list(map(str, tokens))


def _characters(answer: Answer, positions: Sequence[int]) -> Span | None:
    """The answer without the characters at its ends that belong to no token."""
    inside = [position for position in positions if answer.start <= position < answer.start + len(answer.text)]
    return (inside[0], inside[-1] + 1) if inside else None
