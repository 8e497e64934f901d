"""Texts without labels, to pre-train an encoder on."""

from hat_fairseq.data import records
from hat_fairseq.data.encode_examples import encode_pretraining
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.kind import Kind
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import PACKING, ROWS, TEXT
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row


class Pretraining(Kind):
    """Rows that are filled with the segments of several texts."""

    name, task = "mlm", "masked_document_lm"
    record = records.PretrainingText
    policies = POLICIES[:1]
    options = (TEXT, ROWS, PACKING)
    folder = ""

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_pretraining(encoder, record)
