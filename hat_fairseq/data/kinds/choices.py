"""The right one of several continuations of a text, or of several candidates for the answer to a question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hat_fairseq.data.dictionary import BOS, EOS
from hat_fairseq.data.kind import HEAD, Array, LabelledKind, LabelPrediction, Tensor, labelled
from hat_fairseq.data.options import Settings
from hat_fairseq.data.record import Record, Text, Texts
from hat_fairseq.data.rows import Part, Row, RowEncoder, at_markers, marked
from hat_fairseq.data.sentences import Divided, Divider, Prepared
from hat_fairseq.data.text import EOS_TOKEN, is_blank

RIGHT, WRONG = "right", "wrong"  # the labels of choices


@dataclass(frozen=True)
class Choice(Record, reads=("text", "segments"), one_of=("text", "segments"), gold="label"):
    """A text with several continuations, one of which is right."""

    text: str | None = None
    segments: Texts | None = None
    question: str | None = None  # becomes the beginning of each choice
    choices: Texts = ()
    label: int | None = None  # number of the right one, from 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choices(self, "choices")

    @property
    def continuations(self) -> Texts:
        """Returns the choices, each after the question; an empty one stays empty."""
        if is_blank(self.question or ""):
            return self.choices
        return tuple("" if is_blank(each) else f"{str(self.question).strip()} {each}" for each in self.choices)

    def texts(self) -> tuple[Text, ...]:
        return *self.parts, *self.continuations


@dataclass(frozen=True)
class Candidates(Record, reads=("question", "text", "segments"), one_of=("text", "segments"), gold="label"):
    """A question on a text with several candidates for its answer, one of which is right."""

    question: str
    text: str | None = None
    segments: Texts | None = None
    candidates: Texts = ()
    label: int | None = None  # number of the right one, from 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choices(self, "candidates")

    @property
    def choices(self) -> Texts:
        return self.candidates

    def texts(self) -> tuple[Text, ...]:
        return *self.parts, *self.candidates


def _check_choices(record: Any, name: str) -> None:
    if (count := len(record.choices)) < 2:
        raise ValueError(f"{record.place} has {count} {name}; at least two are needed")
    if record.label is not None and record.label not in range(count):
        raise ValueError(f"{record.place} has the label {record.label}; the {name} have the numbers 0 to {count - 1}")


class NumberedKind(LabelledKind):
    """The number of the right choice of a record, which has a logit for each."""

    num_scores = 1

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return (f"choice {record.label}",)

    def predict(
        self, record: Any, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> LabelPrediction:
        output = outputs[0][: len(record.choices)]
        return LabelPrediction(record.id, str(int(output.argmax())), output.tolist())


class ChoiceKind(NumberedKind):
    """The right one of several continuations: targets (B,), logits (B, K) for the K choices of the record with most.

    Each choice is a row of text, question and choice, and gets one logit (Rohde et al. 2021, section 7, on RACE; Liu et
    al. 2019). Records may have different numbers of choices.
    """

    name, task = "choice", "multiple_choice"
    record = Choice
    classes = RIGHT, WRONG
    joins_rows = True
    details = "weights"

    def prepare(self, record: Any, settings: Settings, counts: Counter[str], policy: str = "error") -> Prepared:
        """Returns the record with its choices as continuations; see `Kind.prepare`."""
        joined = replace(record, question=None, choices=record.continuations)
        return super().prepare(joined, settings, counts, policy)

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the text and each choice."""
        choices = (divider.short_text(record, choice) for choice in record.continuations)
        return [divider.text(record, record.parts[0]), *choices]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row for each choice: the text, which is truncated, and the choice with its question."""
        record: Any = prepared.record
        context, *choices = (Part(marked(encoder.text(text))) for text in prepared.texts)  # all choices share it
        rows = []
        for number, choice in enumerate(choices):
            streams = {"source": encoder.row(record, [context, choice], truncated=0).tokens}
            if record.label is not None:
                streams["label"] = [RIGHT if number == record.label else WRONG]
            rows.append(Row(record.id, number, len(choices), streams))
        return rows

    def texts_of_row(self, record: Any, row: Row) -> tuple[Text, ...]:
        """Returns the text, and the choice with its question."""
        return *record.parts, record.continuations[row.number]

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Tensor:
        """Returns (B, K) scores in fp32, -inf beyond a record's choices."""
        assert num_rows is not None
        scores = outputs[HEAD].float().squeeze(-1)
        exists = indices(num_rows, int(num_rows.max())) < num_rows[:, None]
        return scores.new_full(exists.shape, float("-inf")).masked_scatter(exists, scores)

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> int:
        """Returns 1 for the right choice, 0 for a wrong one."""
        if label not in ([RIGHT], [WRONG]):
            raise ValueError(f"{' '.join(label)!r:.80} is neither {RIGHT} nor {WRONG}")
        return int(label == [RIGHT])

    def sample_target(self, targets: list[int]) -> int:
        """Returns the number of the right choice."""
        if sum(targets) != 1:
            raise ValueError(f"{sum(targets)} right choices instead of one")
        return targets.index(1)


class CandidateKind(NumberedKind):
    """The candidate that answers a question on a text: targets (B,), logits (B, K) for up to K candidates.

    A row is `<s> question </s> <s> candidate 1 <s> candidate 2 ... </s> </s> <s> text`. The logit of a candidate is
    computed from the state at its `<s>` (Liu et al. 2022, section 4.2.3, after Beltagy et al. 2020, section 6.1).
    Question and candidates are never truncated.
    """

    name, task = "candidates", "candidate_selection"
    record = Candidates
    classes = ()
    positions = True
    head_level = "segment"

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the text; the question and each candidate are one segment."""
        question, context = record.parts
        short = (divider.one_segment(record, text) for text in (question, *record.choices))
        return [divider.text(record, context), *short]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row; its label is a number, and the markers of candidates stand for their numbers."""
        record, (text, *short) = prepared.record, prepared.texts
        question, *candidates = map(encoder.one_segment, short)
        segments = [[*question, EOS_TOKEN], *candidates]
        first = Part(marked(segments), at_markers(segments, [None, *range(len(candidates))]))
        row = encoder.row(record, [first, Part(marked(encoder.text(text)))], truncated=1)
        return [Row(record.id, 0, 1, labelled(record, row.tokens), row.elements)]

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Tensor:
        """Returns (B, K) scores in fp32, -inf beyond a row's candidates."""
        counts = _candidate_markers(tokens).sum(dim=1)
        most = int(counts.max())
        scores = outputs[HEAD].float().squeeze(-1)[:, 1 : 1 + most]  # of all markers; the first is the question's
        return scores.masked_fill(indices(counts, most) >= counts[:, None], float("-inf"))

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> int:
        """Returns the number of the right candidate."""
        word, count = " ".join(label), int(_candidate_markers(tokens[None]).sum())
        if not word.isdigit() or int(word) >= count:
            raise ValueError(f"{word!r:.80} is no number of one of {count} candidates")
        return int(word)


def _candidate_markers(tokens: Any) -> Any:
    """(B, T) token ids -> (B, T), True at the markers of candidates: those after the first `</s>`."""
    return (tokens == BOS) & ((tokens == EOS).cumsum(1) == 1)


def indices(like: Tensor, length: int) -> Tensor:
    """Returns (length,) 0, 1, 2, ... on the device of a tensor."""
    return like.new_ones(length).cumsum(0) - 1
