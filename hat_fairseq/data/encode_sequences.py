"""Rows of sequences that are not text: `<s>`, whose state classifiers read, then the symbols, without BPE."""

from hat_fairseq.data.clean import symbols_of
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.labels import label_token
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import BOS, Row


def encode_sequence(encoder: Encoder, record: Record) -> list[Row]:
    """One row of each part, truncated by itself; all have the label of the record."""
    rows = []
    for number, text in enumerate(record.parts):
        tokens = [BOS, *symbols_of(record, text, encoder.kind)]
        encoder.totals["source_tokens"] += len(tokens) - 1
        (kept,) = encoder.slices(record, tokens, "source")
        streams = {"source": tokens[kept]}
        if record.label is not None:
            streams["label"] = [label_token(record.label)]
        rows.append(Row(record.id, number, len(record.parts), streams))
    return rows
