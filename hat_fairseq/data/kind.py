"""The class `Kind`: the fields of its records, how they become rows, and the task that reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import PACKING, ROWS, TEXT
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row

# The JSON keys of a text in elements.
DIVIDED = ("sentences", "segments", "words", "paragraphs", "tokens", "pixels")
GOLD = ("target", "label", "labels", "answers", "annotations")  # the fields with a gold target or label


@dataclass(frozen=True)
class Kind:
    """A kind of data.

    Args:
        name: as `--kind` takes it.
        task: the fairseq task that reads it.
        keys: of a JSON object, besides `id` and `meta`; see `records_json.py`.
        encode: from a stored record to rows.
        gold: the field of a record with its gold target or label; None if there is none.
        classes: the labels; None for those of the training part.
        positions: labels are also numbers: positions of tokens in a row.
        num_parts: how many parts a record may have.
        main: number of the part that may be long; -1 for the last.
        truncated: number of the part that is truncated if a row is too long; None for the longest.
        divided: each element of the text has a label, so the text comes divided and no element may be empty.
        words: the elements are words, and do not get a marker each.
        alphabet: the symbols of its dictionary, where the training part does not decide them.
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
    alphabet: tuple[str, ...] = ()
    policies: tuple[str, ...] = POLICIES[:3]
    options: tuple[str, ...] = (TEXT, ROWS)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "input0"

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
        """Whether rows are filled with several records, which have no ids then."""
        return PACKING in self.options

    @property
    def ids_may_be_missing(self) -> bool:
        return self.packs

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
        """Refuse a record, from a reader or a file, that is not of this kind.

        Raises:
            ValueError: with the record's name.
        """
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
