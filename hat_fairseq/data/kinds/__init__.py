# ruff: noqa: F401
"""The kinds of data, one for each `--kind`, and their records. Importing this package registers them."""

from hat_fairseq.data.kind import KINDS, Kind, LabelledKind, Prediction, kind_of, register_kind
from hat_fairseq.data.kinds.choices import CandidateKind, Candidates, Choice, ChoiceKind
from hat_fairseq.data.kinds.document_questions import DocumentQuestion, DocumentQuestionKind
from hat_fairseq.data.kinds.documents import Document, DocumentKind
from hat_fairseq.data.kinds.labels import (
    ClassificationKind,
    LabelledSegments,
    LabelledText,
    LabelledWords,
    SegmentKind,
    WordKind,
)
from hat_fairseq.data.kinds.pretraining import PretrainingKind, PretrainingText
from hat_fairseq.data.kinds.questions import Question, QuestionKind
from hat_fairseq.data.kinds.sequences import (
    BytePair,
    BytePairKind,
    ByteSequence,
    ByteSequenceKind,
    SequenceKind,
    SymbolSequence,
)
from hat_fairseq.data.record import Annotation, Answer, Record, Turn

for _kind in (
    DocumentKind,
    ClassificationKind,
    ChoiceKind,
    CandidateKind,
    SegmentKind,
    WordKind,
    QuestionKind,
    DocumentQuestionKind,
    PretrainingKind,
    SequenceKind,
    ByteSequenceKind,
    BytePairKind,
):
    register_kind(_kind())

from hat_fairseq.units import evidence as _evidence  # noqa: E402 - registers the kind of questions on units
