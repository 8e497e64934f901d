"""The kinds of data, one for each `--kind`: a file each. Importing this package registers them."""

from hat_fairseq.data.kind import KINDS, Kind, LabelledKind, Prediction, kind_of, register_kind
from hat_fairseq.data.kinds.choices import Candidates, Choice
from hat_fairseq.data.kinds.document_questions import DocumentQuestions
from hat_fairseq.data.kinds.documents import Documents
from hat_fairseq.data.kinds.labels import Classification, Segments, Words
from hat_fairseq.data.kinds.pretraining import Pretraining
from hat_fairseq.data.kinds.questions import Questions
from hat_fairseq.data.kinds.sequences import BytePairs, ByteSequences, Sequences

for _kind in (
    Documents,
    Classification,
    Choice,
    Candidates,
    Segments,
    Words,
    Questions,
    DocumentQuestions,
    Pretraining,
    Sequences,
    ByteSequences,
    BytePairs,
):
    register_kind(_kind())

__all__ = ["KINDS", "Kind", "LabelledKind", "Prediction", "kind_of", "register_kind"]
