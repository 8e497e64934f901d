"""`Kind`: a kind of data, from its records to the predictions about them. Each kind is in one file of `kinds/`.

A kind knows its record, its rows, the targets of a batch, the logits of its heads and its predictions. It imports
neither torch nor fairseq: logits are computed with the methods of tensors, predictions from arrays of numpy.

Legend: B samples, R rows, T tokens of a row, K classes, N segments or candidates of the row with most.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from hat_fairseq.data.dictionary import NO_LABEL, label_token
from hat_fairseq.data.options import POLICIES, ROWS, TEXT, Settings
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Divider, Prepared, check_visible
from hat_fairseq.options import OptionError
from hat_fairseq.suggestions import did_you_mean

HEAD = "sentence_classification_head"  # fairseq's name of a head, which checkpoints have
IGNORED = -100  # the target of what has no label; torch's cross-entropy leaves it out

Tensor = Any  # of torch
Array = np.ndarray


@dataclass
class Prediction:
    """What a model predicts for a record. Kinds add fields, which are the keys of the JSON line."""

    id: str
    segments: list[dict[str, Any]] | None = field(default=None, kw_only=True)  # their texts, and figures of each
    n_best: list[dict[str, Any]] | None = field(default=None, kw_only=True)  # the best answers with their scores
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)  # of the record

    def to_json(self) -> dict[str, Any]:
        """Returns the object of a JSON line; the last three keys only if they are not None."""
        fields = asdict(self)
        last = {name: fields.pop(name) for name in ("segments", "n_best", "meta")}
        return fields | {name: value for name, value in last.items() if value is not None}


def files_of_pairs() -> dict[str, tuple[str, str]]:
    """Returns `Kind.files` of documents with targets, as fairseq's translation has them."""
    pairs = {"source": "source-target", "target": "source-target", "role": "role-None"}
    return {side: (f"{{split}}.{pair}.{side}", f"dict.{side}.txt") for side, pair in pairs.items()}


def files_of_rows(folder: str) -> dict[str, tuple[str, str]]:
    """Returns `Kind.files` of rows, which may have labels, as fairseq's `sentence_prediction` has them."""
    below = f"{folder}/" * bool(folder)
    return {"source": (f"{below}{{split}}", f"{below}dict.txt"), "label": ("label/{split}", "label/dict.txt")}


class Kind(ABC):
    """A kind of data."""

    name: ClassVar[str]  # as `--kind` takes it
    task: ClassVar[str]  # the fairseq task that reads it
    record: ClassVar[type[Record]]  # its fields are the keys of a JSON object
    classes: ClassVar[tuple[str, ...] | None] = None  # the labels; None for those of the training split
    positions: ClassVar[bool] = False  # the label stream also has numbers: positions of tokens in a row
    element: ClassVar[str | None] = None  # what an element of the text is called if it has a label: it is not empty
    #: What --segments cannot change: `element` if each one keeps a marker of its own, `whole` if a text is one segment.
    keeps: ClassVar[str | None] = None
    alphabet: ClassVar[tuple[str, ...]] = ()  # the symbols of its dictionary, where the training split does not decide
    policies: ClassVar[tuple[str, ...]] = POLICIES[:3]  # allowed values of --long-source; the first is always `error`
    options: ClassVar[tuple[str, ...]] = (TEXT, ROWS)  # the groups of options that have an effect (`options.py`)
    folder: ClassVar[str] = ""  # where in `bin` fairseq's files of the source are
    verb: ClassVar[str] = "embed"  # of `hat`, which uses its models; `generate` if it has texts as targets
    packs: ClassVar[bool] = False  # rows are filled with several records, to predict masked tokens, and have no ids
    # What follows from the above:
    gold: ClassVar[str | None]  # the field of a record with its gold target or label; None if there is none
    has_target: ClassVar[bool]  # it has texts as targets: documents for fairseq's translation
    is_text: ClassVar[bool]  # it is normalised, split and encoded with a BPE; else its symbols are the tokens
    has_running_text: ClassVar[bool]  # its texts may be running text, which a splitter divides; else they are divided
    #: By stream, what it is in `bin`: the files of `{split}` without `.bin` and `.idx`, and the dictionary.
    files: ClassVar[Mapping[str, tuple[str, str]]]

    def __init_subclass__(cls) -> None:
        record = getattr(cls, "record", Record)
        cls.gold, cls.has_target, cls.is_text = record.gold, record.gold == "target", TEXT in cls.options
        cls.has_running_text = cls.is_text and "text" in getattr(record, "reads", ())
        cls.files = files_of_pairs() if cls.has_target else files_of_rows(cls.folder)

    def check_texts(self, record: Any) -> None:
        """Raises EmptyDocumentError for a record with a text that shows nothing; `prepare` does so, too."""
        for text in record.texts():
            check_visible(record, text, self.element)

    @abstractmethod
    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Returns what the model reads of a record in sentences, segments or words, in the order of `encode`.

        EmptyDocumentError if nothing is left of a text.
        """

    @abstractmethod
    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns the rows of a prepared record."""

    def prepare(self, record: Any, settings: Settings, counts: Counter[str], policy: str = "error") -> Prepared:
        """Returns the record as it is stored, here as it is, with its divided texts. Idempotent.

        Everything replaced or dropped is added to `counts`. ValueError as of `divide`.
        """
        return Prepared(record, self.divide(Divider(settings, counts), record))

    def with_letters(self, prepared: Prepared) -> Prepared:
        """Returns texts whose letters are those of their row, where their places are known; see `places`."""
        return prepared

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        """Returns the labels to count for a labelled record; every label must occur in training."""
        return ()

    def divides_text(self, settings: Settings) -> bool:
        """Returns whether these settings divide running text into sentences, so that a splitter has an effect."""
        return self.has_running_text and (settings.segments != "none" or self.fills_rows(settings))

    def fills_rows(self, settings: Settings) -> bool:
        """Returns whether rows are filled with the segments of several records, up to the limit of these settings."""
        return self.packs and settings.max_source_tokens is not None

    def check(self, record: Record) -> None:
        """Refuses a record, from a reader or the caller, that is not of this kind: a ValueError with its name."""
        if not isinstance(record, self.record):
            raise ValueError(
                f"{record.name} is a {type(record).__name__}, and the kind {self.name} has {self.record.__name__}"
            )


class LabelledKind(Kind):
    """A kind with labels, for an encoder with classification heads. This one: a label for each record."""

    verb = "predict"
    folder = "input0"  # as for fairseq's `sentence_prediction`
    criterion: ClassVar[str] = "document_labels"
    head_level: ClassVar[str] = "document"  # what the states of the head are about, one of `modules.heads.LEVELS`
    num_scores: ClassVar[int | None] = None  # logits of the head; None: one for each label
    joins_rows: ClassVar[bool] = False  # a sample is all rows of a record
    prediction_options: ClassVar[Any] = None  # a dataclass of options that `predict` takes
    names_labels: ClassVar[bool]  # the head has a logit for each label, which follows from `num_scores`
    #: What --details adds to a prediction: `weights` of the segments that it is made from, `segments` with what is
    #: predicted about each, or the best `answers`; empty for nothing.
    details: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.names_labels = cls.num_scores is None

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return (str(record.label),)

    def heads(self, num_labels: int) -> dict[str, tuple[str, int]]:
        """Says for each head by name: what its states are about, and its number of logits."""
        return {HEAD: (self.head_level, self.num_scores or num_labels)}

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Any:
        """Returns the logits that losses and predictions are computed from, here (B, K).

        Args:
            outputs: of each head, by its name: (R, K) of documents, (R, N, K) of segments, (R, T, K) of tokens.
            tokens: (R, T) token ids, padded on the right.
            num_rows: (B,) how many of the R rows, in order, belong to each sample; None: one.
        """
        return outputs[HEAD]

    def scores(self, logits: Tensor) -> Tensor:
        """Returns what predictions are made from, and what is averaged over an ensemble: here probabilities."""
        return logits.softmax(dim=-1)

    def target_size(self, tokens: int, markers: int) -> int:
        """Returns how many numbers the target of a row of so many tokens and markers has; 0: it is one number."""
        return 0

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> float | list[int]:
        """Returns the target of a row, padded with `IGNORED` in a batch; here its class.

        Args:
            label: the tokens of its line in the label stream.
            tokens: (T,) token ids with `</s>`.
            classes: the number of the class of each label token.
        Raises:
            ValueError: the label does not belong to the row.
        """
        return class_numbers(label, 1, classes)[0]

    def sample_target(self, targets: list[Any]) -> Any:
        """Returns the target of a sample from those of its rows, here one; ValueError if they do not match."""
        (target,) = targets
        return target

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> Prediction:
        """Returns the prediction for a record.

        Args:
            rows: those of the record.
            outputs: `scores` of each row (of the only sample, if it joins rows): arrays that may be padded at the end.
            labels: the names of the classes.
            options: of the class `prediction_options`.
        """
        probabilities = dict(zip(labels, outputs[0].tolist(), strict=True))
        return LabelPrediction(record.id, max(probabilities, key=probabilities.__getitem__), probabilities)

    def chosen(self, values: Mapping[str, Any]) -> Any:
        """Returns `prediction_options` with these values; ValueError for a name that this kind does not have."""
        known = () if self.prediction_options is None else fields(self.prediction_options)
        if others := sorted(values.keys() - {item.name for item in known}):
            raise OptionError(f"{{{others[0]}}} has no effect on the kind {self.name}: remove it", **{others[0]: None})
        return None if self.prediction_options is None else self.prediction_options(**values)

    def texts_of_row(self, record: Any, row: Row) -> tuple[Text, ...]:
        """Returns the texts that a row is made of, in order; here those of its record."""
        return tuple(record.parts)

    def options_of(self, options: Any, models: Sequence[Any]) -> Any:
        """Returns the options of a prediction, with what the models themselves say; here as they are."""
        return options

    def segments(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], prediction: Any
    ) -> list[dict[str, Any]] | None:
        """Returns what is predicted about each segment of a record; None if that is nothing of its own."""
        return None


@dataclass
class LabelPrediction(Prediction):
    """The label of a record. With choices it is the number of one, and `probabilities` are in their order."""

    label: str
    probabilities: dict[str, float] | list[float]


def labelled(record: Any, tokens: list[str]) -> dict[str, list[str]]:
    """Returns the streams of a row with the label of its record."""
    return {"source": tokens} | ({} if record.label is None else {"label": [label_token(str(record.label))]})


def class_numbers(label: list[str], expected: int, classes: Mapping[str, int]) -> list[int]:
    """Returns the classes of label tokens, `IGNORED` for `<pad>`; ValueError unless they are `expected` known ones."""
    if len(label) != expected:
        raise ValueError(f"{len(label)} labels where there should be {expected}")
    if unknown := [word for word in label if word != NO_LABEL and word not in classes]:
        raise ValueError(f"the label {unknown[0]!r:.80}, which is not in label/dict.txt")
    return [IGNORED if word == NO_LABEL else classes[word] for word in label]


KINDS: dict[str, Kind] = {}  # by name


def register_kind(kind: Kind) -> None:
    """Makes a kind known to all commands; its fairseq task is registered by `tasks.encoder_task.register_tasks`."""
    KINDS[kind.name] = kind


def kind_of(name: str | Kind) -> Kind:
    """Returns the kind of this name; ValueError if there is none."""
    if isinstance(name, Kind):
        return name
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}; choose one of {', '.join(KINDS)}{did_you_mean(name, KINDS)}")
    return KINDS[name]
