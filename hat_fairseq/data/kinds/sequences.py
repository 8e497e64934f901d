"""Labels of sequences of symbols: tokens, bytes or pixels as given, without BPE."""

from __future__ import annotations

from typing import Any, ClassVar

from hat_fairseq.data import encode_examples, records
from hat_fairseq.data.clean import BYTES
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.kind import LabelledKind
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row


class Sequences(LabelledKind):
    """A label for each sequence of symbols: targets (B,), logits (B, K)."""

    name, task = "sequence", "sequence_classification"
    record: ClassVar[type[Record]] = records.SymbolSequence
    divided = True
    policies = POLICIES[:2]
    options = ()

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_examples.encode_sequence(encoder, record)


class ByteSequences(Sequences):
    """A label for the bytes of a text, or for the pixels of a picture."""

    name = "byte_sequence"
    record: ClassVar[type[Record]] = records.ByteSequence
    divided = False
    alphabet = BYTES


class BytePairs(ByteSequences):
    """A label for each pair of texts, two consecutive rows of bytes; the head reads the states of both."""

    name = "byte_pair"
    record = records.BytePair
    head_level = "pair"
    joins_rows = True
    rows_of_sample = 2

    def sample_target(self, targets: list[Any]) -> Any:
        """The label, which both rows have."""
        if len(targets) != 2:
            raise ValueError(f"{len(targets)} rows instead of two")
        return targets[0]
