"""Answers as positions in a row of tokens."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hat_fairseq.data.encoded import EncodedRow
from hat_fairseq.data.example import Answer, Example
from hat_fairseq.data.token_spans import Span, find_span, kept_characters

NO_ANSWER = ("0", "0")


def label_answers(example: Example, rows: Sequence[EncodedRow], counts: Counter[str]) -> list[EncodedRow]:
    """The rows of a question with ``START END`` as label: the first answer that is wholly in the row, else ``0 0``.

    Positions count tokens of the row from 0, both inclusive. Nothing happens if it is not known what is right.

    Adds to ``counts``: ``answers_not_found`` (no token stands for them), ``answers_in_no_row`` (cut off, or longer than
    what two windows share), ``examples_left_without_answer`` (they had some, and no row has one), and
    ``answers_inside_tokens`` (rows in which the first or the last token stands for more than the answer).
    """
    if example.answers is None:
        return list(rows)
    context = example.inputs[0][1]
    assert isinstance(context, str)
    positions = kept_characters(context) if example.answers else []
    wanted = [span for answer in example.answers if (span := _characters(answer, positions)) is not None]
    counts["answers_not_found"] += len(example.answers) - len(wanted)
    found = [[find_span(row.spans or (), *span) for span in wanted] for row in rows]
    counts["answers_in_no_row"] += sum(not any(in_row) for in_row in zip(*found, strict=True))
    if example.answers and not any(span for in_row in found for span in in_row):
        counts["examples_left_without_answer"] += 1
    return [_labelled(row, in_row, wanted, counts) for row, in_row in zip(rows, found, strict=True)]


def _characters(answer: Answer, positions: Sequence[int]) -> Span | None:
    """The answer without the characters at its ends that belong to no token."""
    inside = [position for position in positions if answer.start <= position < answer.start + len(answer.text)]
    return (inside[0], inside[-1] + 1) if inside else None


def _labelled(
    row: EncodedRow, found: Sequence[tuple[int, int] | None], wanted: Sequence[Span], counts: Counter[str]
) -> EncodedRow:
    for tokens, characters in zip(found, wanted, strict=True):
        if tokens is not None:
            first, last = (row.spans or ())[tokens[0]], (row.spans or ())[tokens[1]]
            assert first is not None and last is not None
            counts["answers_inside_tokens"] += (first[0], last[1]) != characters
            return replace(row, label=list(map(str, tokens)))
    return replace(row, label=list(NO_ANSWER))
