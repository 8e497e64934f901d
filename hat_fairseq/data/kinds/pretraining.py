"""Texts without labels, to pre-train an encoder on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hat_fairseq.data.kind import Kind
from hat_fairseq.data.long_input import pack_rows
from hat_fairseq.data.options import POLICIES, ROWS, TEXT
from hat_fairseq.data.record import Record, Texts, Turn, roles_of, texts_of
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Divider, Prepared


@dataclass(frozen=True)
class PretrainingText(Record, reads=("text", "elements"), one_of=("text", "turns", "segments")):
    """A text to pre-train on. In a file its id may be missing."""

    text: str | None = None
    segments: Texts | None = None
    turns: tuple[Turn, ...] | None = None

    @property
    def elements(self) -> Texts | None:
        """Returns the segments, or the texts of the turns."""
        return self.segments if self.turns is None else texts_of(self.turns)


class PretrainingKind(Kind):
    """Rows that are filled with the segments of several texts."""

    name, task = "mlm", "masked_document_lm"
    record = PretrainingText
    policies = POLICIES[:1]
    options = (TEXT, ROWS)
    packs = True

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the text; speakers are no part of it. Rows end between sentences even if these have no markers."""
        divider.counts["roles_left_out"] += len(roles_of(record.turns) or ())
        split = not divider.settings.whole or divider.settings.splitter != "given"
        return [divider.sentences(record, record.parts[0], split)]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns rows of one document, without labels; `pack_documents` fills rows with several."""
        rows = list(pack_documents(encoder, [units_to_pack(encoder, prepared)]))
        return [Row(prepared.record.id, number, len(rows), {"source": tokens}) for number, tokens in enumerate(rows)]


def units_to_pack(encoder: RowEncoder, prepared: Prepared) -> list[list[str]]:
    """Returns the tokens of the segments of a document, without markers."""
    return encoder.segments(encoder.units(*prepared.texts), whole=False)


def pack_documents(encoder: RowEncoder, documents: Iterable[list[list[str]]]) -> Iterator[list[str]]:
    """Returns rows filled with the segments of consecutive documents; see `long_input.pack_rows`."""
    settings = encoder.settings
    limits = settings.max_segments, settings.segment_length
    return pack_rows(documents, encoder.limit("source"), not settings.whole, encoder.counts, *limits)
