"""The example type: input of classification, multiple choice, tagging, question answering and pre-training.

Kinds: ``classification`` (one label), ``choice`` (one of several continuations is right), ``segments`` (a label for
each segment), ``tokens`` (one for each word), ``qa`` (answers are spans of a text), ``mlm`` (no labels: pre-training).
``text`` is not among them: documents with targets are ``document.Document``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines

KINDS = ("classification", "choice", "segments", "tokens", "qa", "mlm")
TASKS = ("text", *KINDS)  # what `hat preprocess` reads: documents with targets, or examples of a kind

Text = str | tuple[str, ...]  # running text, still to be split into sentences; or sentences, segments or words as given


@dataclass(frozen=True)
class Answer:
    """An answer to a question: ``text`` stands in the context as given, from its character ``start`` on."""

    text: str
    start: int


@dataclass(frozen=True)
class Example:
    """An example of any kind.

    Args:
        id: names the example; not empty, without tabs and line breaks.
        inputs: for ``choice`` one for each choice, else exactly one. Each has one or two parts: ``(text,)``,
            ``(premise, hypothesis)``, ``(question, context)`` for ``qa``, ``(context, question + " " + choice)`` for
            ``choice``.
        label: ``classification``: the label; ``choice``: the number of the right choice, from 0, as a string.
        labels: ``segments`` and ``tokens``: one for each element of ``inputs[0][0]``, which is a tuple then.
        answers: ``qa``: empty if the text has no answer, None if that is not known.
        origin: where it comes from, for messages only.

    Raises:
        ValueError: the id is not usable, there is no input, an input has not one or two parts, there are labels of
            another number than elements, or an answer does not stand where it says.
    """

    id: str
    inputs: tuple[tuple[Text, ...], ...]
    label: str | None = None
    labels: tuple[str, ...] | None = None
    answers: tuple[Answer, ...] | None = None
    origin: str | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not self.id.strip() or any(character in self.id for character in "\t\r\n"):
            raise ValueError(f"example id {self.id!r} is empty or contains a tab or a line break")
        if not self.inputs or not all(len(parts) in (1, 2) for parts in self.inputs):
            raise ValueError(f"example {self.id!r} needs inputs of one or two parts each")
        if self.label == "" or "" in (self.labels or ()):
            raise ValueError(f"example {self.id!r} has an empty label")
        if self.labels is not None:
            self._check_labels(self.labels)
        for answer in self.answers or ():
            self._check_answer(answer)

    @property
    def source(self) -> object:
        """What is read, to compare examples by."""
        return self.inputs

    @property
    def name(self) -> str:
        """For messages: the id, and the origin where it is known."""
        return f"example {self.id!r}" + (f" ({self.origin})" if self.origin else "")

    @property
    def labelled(self) -> bool:
        """Whether it has a label, labels or answers."""
        return self.label is not None or self.labels is not None or self.answers is not None

    @classmethod
    def from_json(cls, record: Any, kind: str, where: str) -> Example:
        """Build an example from a JSON object; see ``example_json``. ``where`` (file and line) opens every message."""
        from hat_fairseq.data.example_json import example_from_json

        return example_from_json(record, kind, where)

    def to_json(self, kind: str) -> dict[str, Any]:
        """The same example for ``from_json``."""
        from hat_fairseq.data.example_json import example_to_json

        return example_to_json(self, kind)

    def _check_labels(self, labels: tuple[str, ...]) -> None:
        elements = self.inputs[0][0]
        if isinstance(elements, str):
            raise ValueError(f"example {self.id!r} has labels for segments or words, but its text is not divided")
        if len(elements) != len(labels):
            raise ValueError(f"example {self.id!r} has {len(labels)} labels for {len(elements)} segments or words")

    def _check_answer(self, answer: Answer) -> None:
        context = self.inputs[0][-1]
        if len(self.inputs[0]) != 2 or not isinstance(context, str):
            raise ValueError(f"example {self.id!r} has answers, but no question with a running text")
        found = context[max(0, answer.start) : max(0, answer.start) + len(answer.text)]
        if answer.start < 0 or not answer.text.strip() or found != answer.text:
            raise ValueError(
                f"example {self.id!r}: the answer {answer.text!r:.80} does not stand at character {answer.start} of "
                f"its text, where {found!r:.80} stands; starts count characters from 0"
            )


def read_examples(path: str | Path, kind: str) -> Iterator[Example]:
    """Read a ``.jsonl`` or ``.jsonl.gz`` file, one example of ``kind`` on each line.

    In files for ``mlm`` the id may be left out: it becomes ``FILE:LINE``.

    Raises:
        ValueError: invalid UTF-8 or JSON, an unknown key, an id that occurs twice, anything ``Example`` refuses; with
            file and line.
    """
    line_of: dict[str, int] = {}
    for number, record in read_json_lines(path):
        where = f"{path}:{number}"
        if kind == "mlm" and "id" not in record:
            record = {"id": f"{Path(path).name}:{number}", **record}
        example = Example.from_json(record, kind, where)
        if example.id in line_of:
            raise ValueError(f"{where}: example id {example.id!r} was used before, in line {line_of[example.id]}")
        line_of[example.id] = number
        yield example
