"""The kinds of data: what a record of each has, how it becomes rows, and which task reads them.

A new kind is a value of `Kind` here, a task (`tasks/labelled_tasks.py`) and the form of its predictions
(`inference/assemble.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hat_fairseq.data.encode_annotations import encode_document_question
from hat_fairseq.data.encode_answers import encode_question
from hat_fairseq.data.encode_examples import (
    encode_choices,
    encode_pair,
    encode_pretraining,
    encode_segments,
    encode_words,
)
from hat_fairseq.data.encode_text import encode_text
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.labels import ANSWER_TYPES, RIGHT, WRONG
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import PACKING, ROWS, TARGETS, WINDOWS
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row

GOLD = ("target", "label", "labels", "answers", "annotations")  # the fields of a record that say what is right


@dataclass(frozen=True)
class Kind:
    """A kind of data.

    Args:
        name: as `--kind` takes it.
        task: the fairseq task that reads it.
        keys: of a JSON object, besides `id` and `meta`; see `records_json.py`.
        encode: from a stored record to rows.
        gold: the field of a record that says what is right; None if there is none.
        classes: the labels; None for those of the training part.
        positions: labels are also numbers: positions of tokens in a row.
        num_parts: how many parts a record may have.
        main: number of the part that may be long; -1 for the last.
        truncated: number of the part that is truncated if a row is too long; None for the longest.
        divided: each element of the text has a label, so the text comes divided and no element may be empty.
        words: the elements are words, and do not get a marker each.
        policies: for long sources; the first one is `error`.
        options: the groups of options that have an effect (`options.py`).
        defaults: of options, where they differ from ours.
        folder: where in `bin` fairseq's files of the source are.
    """

    name: str
    task: str
    keys: tuple[str, ...]
    encode: Callable[[Encoder, Record], list[Row]]
    gold: str | None = None
    classes: tuple[str, ...] | None = None
    positions: bool = False
    num_parts: tuple[int, ...] = (1,)
    main: int = 0
    truncated: int | None = None
    divided: bool = False
    words: bool = False
    policies: tuple[str, ...] = POLICIES[:3]
    options: tuple[str, ...] = (ROWS,)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "input0"

    @property
    def has_target(self) -> bool:
        """Whether it has texts as targets: documents for fairseq's translation."""
        return self.gold == "target"

    @property
    def packs(self) -> bool:
        """Whether rows are filled with several records, which have no ids then."""
        return PACKING in self.options

    @property
    def ids_may_be_missing(self) -> bool:
        return self.packs

    @property
    def divided_key(self) -> str:
        """The JSON key of a text in elements."""
        return next(key for key in ("sentences", "segments", "words", "paragraphs") if key in self.keys)

    def is_main(self, record: Record, number: int) -> bool:
        """Whether the part of this number may be long: it is split if it is running text."""
        return number == self.main % len(record.parts)

    def check(self, record: Record) -> None:
        """Refuse a record, from a reader or a file, that is not of this kind.

        Raises:
            ValueError: with the record's name.
        """
        problem = None
        chooses, text = "choices" in self.keys, record.parts[-1]
        if len(record.parts) not in self.num_parts:
            problem = f"it has {len(record.parts)} parts, not {' or '.join(map(str, self.num_parts))}"
        elif (len(record.choices) < 2) if chooses else record.choices:
            problem = (
                f"it has {len(record.choices)} choices; {'at least two are needed' if chooses else 'none is known'}"
            )
        elif self.divided and (isinstance(text, str) or not text):
            problem = f"it has no {self.divided_key}"
        elif self.gold == "answers" and not all(isinstance(part, str) for part in record.parts):
            problem = "question and text must be running text"
        elif self.gold == "annotations" and not isinstance(record.parts[0], str):
            problem = "its question must be running text"
        elif record.roles is not None and "turns" not in self.keys:
            problem = "it has roles"
        elif chooses and record.label is not None and record.label not in map(str, range(len(record.choices))):
            problem = f"its label {record.label!r} is no number of a choice, from 0 to {len(record.choices) - 1}"
        for name in GOLD:
            if name != self.gold and getattr(record, name) is not None:
                problem = f"it has {name}"
        if problem:
            raise ValueError(f"{record.name} is not of the kind {self.name}: {problem}")


_ALL = (
    Kind(
        name="text",
        task="document_to_text",
        keys=("question", "text", "sentences", "turns", "target", "summary"),
        encode=encode_text,
        gold="target",
        num_parts=(1, 2),  # a question becomes the first sentence
        main=-1,
        policies=POLICIES,
        options=(TARGETS,),
        folder="",
    ),
    Kind(
        name="classification",
        task="document_classification",
        keys=("text", "segments", "second", "label"),
        encode=encode_pair,
        gold="label",
        num_parts=(1, 2),
    ),
    Kind(
        name="choice",
        task="multiple_choice",
        keys=("text", "segments", "question", "choices", "label"),
        encode=encode_choices,
        gold="label",
        classes=(RIGHT, WRONG),
        truncated=0,
    ),
    Kind(
        name="segments",
        task="segment_classification",
        keys=("segments", "labels"),
        encode=encode_segments,
        gold="labels",
        divided=True,
    ),
    Kind(
        name="tokens",
        task="token_classification",
        keys=("words", "labels"),
        encode=encode_words,
        gold="labels",
        divided=True,
        words=True,
    ),
    Kind(
        name="qa",
        task="question_answering",
        keys=("question", "text", "answers"),
        encode=encode_question,
        gold="answers",
        classes=(),
        positions=True,
        num_parts=(2,),
        main=-1,
        truncated=1,
        policies=POLICIES,
        options=(ROWS, WINDOWS),
    ),
    Kind(
        name="document_qa",
        task="document_question_answering",
        keys=("question", "paragraphs", "annotations"),
        encode=encode_document_question,
        gold="annotations",
        classes=ANSWER_TYPES,
        positions=True,
        num_parts=(2,),
        main=-1,
        truncated=1,
        divided=True,
        policies=POLICIES,
        options=(WINDOWS,),
    ),
    Kind(
        name="mlm",
        task="masked_document_lm",
        keys=("text", "segments"),
        encode=encode_pretraining,
        policies=POLICIES[:1],
        options=(ROWS, PACKING),
        defaults={"pack": True},
        folder="",
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of(name: str | Kind) -> Kind:
    """The kind of this name; ValueError if there is none."""
    if isinstance(name, Kind):
        return name
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}; choose one of {', '.join(KINDS)}")
    return KINDS[name]
