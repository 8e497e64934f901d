"""Rows: what a record becomes for the model, one sample of fairseq each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

BOS = "<s>"  # before each sentence or segment
EOS = "</s>"  # two of them between the parts of a row, as in RoBERTa; one between documents

# The tokens of a sentence, a segment or a row. Beside each is what it stands for, or None: the role of its sentence,
# the number of its word or segment, its characters in the context of a question.
Unit = list[tuple[str, Any]]


@dataclass(frozen=True)
class Row:
    """A record as the model reads it, or one chunk, one choice or one window of it.

    Args:
        id: the record's id.
        part: number of the chunk, choice or window, from 0.
        num_parts: how many the record has.
        streams: names and tokens of the lines to write. `source`: `<s> s1 <s> s2 [</s> </s> <s> t1]`, without the final
            `</s>` that fairseq-preprocess appends; `target`; `role`, one for each token of the source; `label`, whose
            form depends on the kind (docs/data.md). What is not known is missing.
        spans: for each token of the source the number of the element (int) or the characters of the context (begin,
            end) that it stands for, None for tokens that stand for none. Empty for kinds without.
        num_elements: the number of elements of the record.
    """

    id: str
    part: int
    num_parts: int
    streams: dict[str, list[str]]
    spans: list[Any] = field(default_factory=list)
    num_elements: int = 0

    @property
    def tokens(self) -> list[str]:
        """The tokens of the source."""
        return self.streams["source"]

    @property
    def label(self) -> list[str] | None:
        """The tokens of the label, or None."""
        return self.streams.get("label")

    @property
    def segments(self) -> int:
        """The number of its markers."""
        return self.tokens.count(BOS)


def unit(tokens: Iterable[str], reference: Any = None) -> Unit:
    """Tokens that all stand for the same thing."""
    return [(token, reference) for token in tokens]


def marked(units: Sequence[Unit]) -> Unit:
    """The units of a part, each behind its marker."""
    return [pair for each in units for pair in ((BOS, None), *each)]


def tokens_of(pairs: Unit) -> list[str]:
    return [token for token, _ in pairs]
