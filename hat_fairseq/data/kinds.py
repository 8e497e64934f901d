"""The kinds of data: the class `Kind`, the fields of its records and how they become rows; one for each `--kind`.

A new kind needs an entry here, a task (`tasks/labelled_tasks.py`) and an assembler of its predictions
(`inference/assemble.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hat_fairseq.data import encode_examples as examples
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

# The JSON keys of a text in elements.
DIVIDED = ("sentences", "segments", "words", "paragraphs", "tokens", "pixels")
GOLD = ("target", "label", "labels", "answers", "annotations")  # the fields with a gold target or label


@dataclass(frozen=True)
class Kind:
    """A kind of data."""

    name: str  # as `--kind` takes it
    task: str  # the fairseq task that reads it
    keys: tuple[str, ...]  # of a JSON object besides `id` and `meta`; see `records_json.py`
    encode: Callable[[Encoder, Record], list[Row]]  # from a stored record to rows
    gold: str | None = None  # the field of a record with its gold target or label; None if there is none
    classes: tuple[str, ...] | None = None  # the labels; None for those of the training part
    positions: bool = False  # labels are also numbers: positions of tokens in a row
    num_parts: tuple[int, ...] = (1,)  # how many parts a record may have
    main: int = 0  # number of the part that may be long; -1 for the last
    truncated: int | None = None  # number of the part that is truncated if a row is too long; None for the longest
    divided: bool = False  # each element of the text has a label, so the text comes divided and no element may be empty
    words: bool = False  # the elements are words, and do not get a marker each
    alphabet: tuple[str, ...] = ()  # the symbols of its dictionary, where the training part does not decide them
    policies: tuple[str, ...] = POLICIES[:3]  # for long sources; the first one is `error`
    options: tuple[str, ...] = (TEXT, ROWS)  # the groups of options that have an effect (`options.py`)
    folder: str = "input0"  # where in `bin` fairseq's files of the source are

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

    @property
    def divided_key(self) -> str:
        """The JSON key of a text in elements."""
        return next(key for key in DIVIDED if key in self.keys)

    @property
    def choices_key(self) -> str | None:
        """The JSON key of choices; None for kinds without."""
        return next((key for key in ("choices", "candidates") if key in self.keys), None)

    def is_main(self, record: Record, number: int) -> bool:
        """Whether the part of this number may be long: it is split if it is running text."""
        return number == self.main % len(record.parts)

    def check(self, record: Record) -> None:
        """Refuse a record, from a reader or a file, that is not of this kind: a ValueError with the record's name."""
        problem = None
        chooses, text = self.choices_key, record.parts[-1]
        if len(record.parts) not in self.num_parts:
            problem = f"it has {len(record.parts)} parts, not {' or '.join(map(str, self.num_parts))}"
        elif (len(record.choices) < 2) if chooses else record.choices:
            name, way = chooses or "choices", "at least two are needed" if chooses else "none is known"
            problem = f"it has {len(record.choices)} {name}; {way}"
        elif self.divided and (isinstance(text, str) or not text):
            problem = f"it has no {self.divided_key}"
        elif self.gold == "answers" and not all(isinstance(part, str) for part in record.parts):
            problem = "question and text must be running text"
        elif self.gold == "annotations" and not isinstance(record.parts[0], str):
            problem = "its question must be running text"
        elif record.roles is not None and "turns" not in self.keys:
            problem = "it has roles"
        elif chooses and record.label is not None and record.label not in map(str, range(len(record.choices))):
            one, last = chooses.removesuffix("s"), len(record.choices) - 1
            problem = f"its label {record.label!r} is no number of a {one}, from 0 to {last}"
        for name in GOLD:
            if name != self.gold and getattr(record, name) is not None:
                problem = f"it has {name}"
        if problem:
            raise ValueError(f"{record.name} is not of the kind {self.name}: {problem}")


# A question and a context, which alone is truncated; labels are positions.
_QUESTION: dict[str, Any] = {"positions": True, "num_parts": (2,), "main": -1, "truncated": 1}
_SEQUENCE: dict[str, Any] = {
    "task": "sequence_classification",
    "encode": examples.encode_sequence,
    "gold": "label",
    "policies": POLICIES[:2],
    "options": (),
}
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
        options=(TEXT, TARGETS),
        folder="",
    ),
    Kind(
        name="classification",
        task="document_classification",
        keys=("text", "segments", "second", "label"),
        encode=examples.encode_pair,
        gold="label",
        num_parts=(1, 2),
    ),
    Kind(
        name="choice",
        task="multiple_choice",
        keys=("text", "segments", "question", "choices", "label"),
        encode=examples.encode_choices,
        gold="label",
        classes=(RIGHT, WRONG),
        truncated=0,
    ),
    Kind(
        name="candidates",
        task="candidate_selection",
        keys=("question", "candidates", "text", "segments", "label"),
        encode=examples.encode_candidates,
        gold="label",
        classes=(),
        **_QUESTION,
    ),
    Kind(
        "segments", "segment_classification", ("segments", "labels"), examples.encode_segments, "labels", divided=True
    ),
    Kind(
        "tokens", "token_classification", ("words", "labels"), examples.encode_words, "labels", divided=True, words=True
    ),
    Kind(
        name="qa",
        task="question_answering",
        keys=("question", "text", "answers"),
        encode=encode_question,
        gold="answers",
        classes=(),
        policies=POLICIES,
        options=(TEXT, ROWS, WINDOWS),
        **_QUESTION,
    ),
    Kind(
        name="document_qa",
        task="document_question_answering",
        keys=("question", "paragraphs", "annotations"),
        encode=encode_document_question,
        gold="annotations",
        classes=ANSWER_TYPES,
        divided=True,
        policies=POLICIES,
        options=(TEXT, WINDOWS),
        **_QUESTION,
    ),
    Kind(
        name="mlm",
        task="masked_document_lm",
        keys=("text", "segments"),
        encode=examples.encode_pretraining,
        policies=POLICIES[:1],
        options=(TEXT, ROWS, PACKING),
        folder="",
    ),
    Kind(name="sequence", keys=("tokens", "label"), divided=True, **_SEQUENCE),
    Kind(name="byte_sequence", keys=("text", "pixels", "label"), alphabet=BYTES, **_SEQUENCE),
    Kind(name="byte_pair", keys=("text", "second", "label"), alphabet=BYTES, num_parts=(2,), **_SEQUENCE),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of(name: str | Kind) -> Kind:
    """The kind of this name; ValueError if there is none."""
    if isinstance(name, Kind):
        return name
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}; choose one of {', '.join(KINDS)}")
    return KINDS[name]
