"""The kinds of data: the class `Kind`, the fields of its records and how they become rows; one for each `--kind`.

A new kind needs an entry here, a task (`tasks/labelled_tasks.py`) and an assembler of its predictions
(`inference/assemble.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hat_fairseq.data import encode_examples as examples
from hat_fairseq.data import records
from hat_fairseq.data.clean import BYTES
from hat_fairseq.data.encode_annotations import encode_document_question
from hat_fairseq.data.encode_answers import encode_question
from hat_fairseq.data.encode_text import encode_text
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.labels import ANSWER_TYPES, RIGHT, WRONG
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import PACKING, ROWS, TARGETS, TEXT, WINDOWS
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row


@dataclass(frozen=True)
class Kind:
    """A kind of data."""

    name: str  # as `--kind` takes it
    task: str  # the fairseq task that reads it
    record: type[Record]  # its fields are the keys of a JSON object
    encode: Callable[[Encoder, Record], list[Row]]  # from a stored record to rows
    classes: tuple[str, ...] | None = None  # the labels; None for those of the training part
    positions: bool = False  # labels are also numbers: positions of tokens in a row
    main: int = 0  # number of the part that may be long; -1 for the last
    truncated: int | None = None  # number of the part that is truncated if a row is too long; None for the longest
    divided: bool = False  # each element of the text has a label, so the text comes divided and no element may be empty
    words: bool = False  # the elements are words, and do not get a marker each
    alphabet: tuple[str, ...] = ()  # the symbols of its dictionary, where the training part does not decide them
    policies: tuple[str, ...] = POLICIES[:3]  # for long sources; the first one is `error`
    options: tuple[str, ...] = (TEXT, ROWS)  # the groups of options that have an effect (`options.py`)
    folder: str = "input0"  # where in `bin` fairseq's files of the source are

    @property
    def gold(self) -> str | None:
        """The field of a record with its gold target or label; None if there is none."""
        return self.record.gold

    @property
    def has_target(self) -> bool:
        """Whether it has texts as targets: documents for fairseq's translation."""
        return self.gold == "target"

    @property
    def is_text(self) -> bool:
        """Whether it is normalised, split and encoded with a BPE. Otherwise its symbols are the tokens."""
        return TEXT in self.options

    @property
    def packs(self) -> bool:
        """Whether rows are filled with several records up to the limit on tokens; rows have no ids."""
        return PACKING in self.options

    def is_main(self, record: Record, number: int) -> bool:
        """Whether the part of this number may be long: it is split if it is running text."""
        return number == self.main % len(record.parts)

    def check(self, record: Record) -> None:
        """Refuse a record, from a reader or the caller, that is not of this kind: a ValueError with its name."""
        if not isinstance(record, self.record):
            raise ValueError(
                f"{record.name} is a {type(record).__name__}, and the kind {self.name} has {self.record.__name__}"
            )


# A question and a context, which alone is truncated; labels are positions.
_QUESTION: dict[str, Any] = {"positions": True, "main": -1, "truncated": 1}
_SEQUENCE: dict[str, Any] = {
    "task": "sequence_classification",
    "encode": examples.encode_sequence,
    "policies": POLICIES[:2],
    "options": (),
}
_ALL = (
    Kind(
        name="text",
        task="document_to_text",
        record=records.Document,
        encode=encode_text,
        main=-1,
        policies=POLICIES,
        options=(TEXT, TARGETS),
        folder="",
    ),
    Kind("classification", "document_classification", records.LabelledText, examples.encode_pair),
    Kind("choice", "multiple_choice", records.Choice, examples.encode_choices, classes=(RIGHT, WRONG), truncated=0),
    Kind("candidates", "candidate_selection", records.Candidates, examples.encode_candidates, classes=(), **_QUESTION),
    Kind("segments", "segment_classification", records.LabelledSegments, examples.encode_segments, divided=True),
    Kind("tokens", "token_classification", records.LabelledWords, examples.encode_words, divided=True, words=True),
    Kind(
        name="qa",
        task="question_answering",
        record=records.Question,
        encode=encode_question,
        classes=(),
        policies=POLICIES,
        options=(TEXT, ROWS, WINDOWS),
        **_QUESTION,
    ),
    Kind(
        name="document_qa",
        task="document_question_answering",
        record=records.DocumentQuestion,
        encode=encode_document_question,
        classes=ANSWER_TYPES,
        divided=True,
        policies=POLICIES,
        options=(TEXT, WINDOWS),
        **_QUESTION,
    ),
    Kind(
        name="mlm",
        task="masked_document_lm",
        record=records.PretrainingText,
        encode=examples.encode_pretraining,
        policies=POLICIES[:1],
        options=(TEXT, ROWS, PACKING),
        folder="",
    ),
    Kind(name="sequence", record=records.SymbolSequence, divided=True, **_SEQUENCE),
    Kind(name="byte_sequence", record=records.ByteSequence, alphabet=BYTES, **_SEQUENCE),
    Kind(name="byte_pair", record=records.BytePair, alphabet=BYTES, **_SEQUENCE),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of(name: str | Kind) -> Kind:
    """The kind of this name; ValueError if there is none."""
    if isinstance(name, Kind):
        return name
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}; choose one of {', '.join(KINDS)}")
    return KINDS[name]
