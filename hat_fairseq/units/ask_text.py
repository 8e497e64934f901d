"""The answers of a transcript as text for a terminal, without characters that a terminal obeys."""

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator

from ..data.speakers import clock
from ..data.text import normalise
from .answers import Answers, Line, Passage, Question

ROWS_OF_LINE = 3  # of the terminal
NEARBY = 2  # turns on either side of the best line
MARK = " > "  # before a line
NOTE = "The model says where to read and may be wrong: read the passage."
OF_LINES = "{mark} marks the {unit}s that most probably answer, best first; the others are near the best one. "
NO_LINES = "The {unit}s are the first ones of each passage: the model was trained without lines that answer. "
NO_JUDGE = " It does not say whether the transcript has an answer at all."


def printed(answers: Answers, most: int) -> Iterator[str]:
    """Yields lines of text: each question with at most so many passages, or with the closest one."""
    unit = answers.transcript.unit
    for question in answers.questions:
        yield from ["", *wrapped(title_of(question))]
        for passage in question.shown[:most]:
            yield from printed_passage(answers, passage, unit)
        if (left := len(question.passages) - most) > 0:
            yield f"  [{left:,} more passage{'s' * (left != 1)}: --passages N]"
    has_lines = any(passage.lines for question in answers.questions for passage in question.shown)
    note = (OF_LINES if has_lines else NO_LINES).format(mark=MARK.strip(), unit=unit) + NOTE
    yield from ["", *wrapped(note if answers.judges else note + NO_JUDGE)]


def title_of(question: Question) -> str:
    return clean(question.question) if question.answered else f'no passage answers: "{clean(question.question)}"'


def printed_passage(answers: Answers, passage: Passage, unit: str) -> Iterator[str]:
    """Yields the place of a passage, its lines, best first, and what is said near the best one; else its beginning."""
    rank = "closest" if passage.rank is None else str(passage.rank)
    parts = [rank, f"{passage.probability:.2f}", place_of(passage, unit), *time_of(passage)]
    yield from wrapped("  ".join([*parts, clean(", ".join(passage.roles))]).rstrip(), "  ")
    for line in passage.lines:
        yield from printed_line(line, MARK, ROWS_OF_LINE)
    numbers, nearby = {line.number for line in passage.lines}, range(passage.first, passage.last + 1)[: 2 * NEARBY + 1]
    if passage.lines:
        nearby = range(passage.lines[0].number - NEARBY, passage.lines[0].number + NEARBY + 1)
    for number in nearby:
        if number in answers.units and number not in numbers:
            yield from printed_line(answers.line(number), " " * len(MARK), 1)


def printed_line(line: Line, mark: str, rows: int) -> list[str]:
    """Returns number, time, speaker and text of a turn or sentence in at most so many rows of the terminal."""
    text = clean(line.text if line.role is None else f"{line.role}: {line.text}")
    return wrapped("  ".join([f"{line.number + 1:,}", *time_of(line), text]), f"  {mark}", rows)


def time_of(part: Line | Passage) -> list[str]:
    """Returns when it begins, as a list that is empty where that is unknown."""
    return [] if part.time is None or part.time[0] is None else [clock(part.time[0])]


def place_of(passage: Passage, unit: str) -> str:
    """Says which turns a passage has; people count from 1."""
    first, last = passage.first + 1, passage.last + 1
    return f"{unit} {first:,}" if first == last else f"{unit}s {first:,}-{last:,}"


def clean(text: str) -> str:
    return normalise(text, Counter())


def wrapped(text: str, indent: str = "", rows: int | None = None) -> list[str]:
    """Returns text in rows that are no longer than the terminal is wide; at most so many, the last one with an end."""
    width, later = max(40, shutil.get_terminal_size().columns), " " * (len(indent) + 2)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=later, max_lines=rows, placeholder=" …")
