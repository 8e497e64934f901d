"""Documents with a text as target: summarization and document translation."""

from hat_fairseq.data import records
from hat_fairseq.data.encode_text import encode_text
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.kind import Kind
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import TARGETS, TEXT
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row


class Documents(Kind):
    """Documents with targets."""

    name, task = "text", "document_to_text"
    record = records.Document
    main = -1
    policies = POLICIES
    options = (TEXT, TARGETS)
    folder = ""

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_text(encoder, record)
