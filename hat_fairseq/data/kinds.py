"""The kinds of data: one `Kind` for each value of `--kind`.

A new kind needs an entry here, a task (`tasks/labelled_tasks.py`) and an assembler of its predictions
(`inference/assemble.py`).
"""

from typing import Any

from hat_fairseq.data.clean import BYTES
from hat_fairseq.data.encode_annotations import encode_document_question
from hat_fairseq.data.encode_answers import encode_question
from hat_fairseq.data.encode_examples import (
    encode_candidates,
    encode_choices,
    encode_pair,
    encode_pretraining,
    encode_segments,
    encode_words,
)
from hat_fairseq.data.encode_sequences import encode_sequence
from hat_fairseq.data.encode_text import encode_text
from hat_fairseq.data.kind import Kind
from hat_fairseq.data.labels import ANSWER_TYPES, RIGHT, WRONG
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import PACKING, ROWS, TARGETS, TEXT, WINDOWS

_SEQUENCES: dict[str, Any] = {
    "task": "sequence_classification",
    "encode": encode_sequence,
    "gold": "label",
    "policies": POLICIES[:2],
    "options": (),
}
_ALL = (
    Kind(
        name="text",
        task="document_to_text",
        keys=("question", "text", "sentences", "turns", "target", "summary"),
        encode=encode_text,
        gold="target",
        num_parts=(1, 2),  # a question becomes the first sentence
        main=-1,
        policies=POLICIES,
        options=(TEXT, TARGETS),
        folder="",
    ),
    Kind(
        name="classification",
        task="document_classification",
        keys=("text", "segments", "second", "label"),
        encode=encode_pair,
        gold="label",
        num_parts=(1, 2),
    ),
    Kind(
        name="choice",
        task="multiple_choice",
        keys=("text", "segments", "question", "choices", "label"),
        encode=encode_choices,
        gold="label",
        classes=(RIGHT, WRONG),
        truncated=0,
    ),
    Kind(
        name="candidates",
        task="candidate_selection",
        keys=("question", "candidates", "text", "segments", "label"),
        encode=encode_candidates,
        gold="label",
        classes=(),
        positions=True,
        num_parts=(2,),
        main=-1,
        truncated=1,
    ),
    Kind(
        name="segments",
        task="segment_classification",
        keys=("segments", "labels"),
        encode=encode_segments,
        gold="labels",
        divided=True,
    ),
    Kind(
        name="tokens",
        task="token_classification",
        keys=("words", "labels"),
        encode=encode_words,
        gold="labels",
        divided=True,
        words=True,
    ),
    Kind(
        name="qa",
        task="question_answering",
        keys=("question", "text", "answers"),
        encode=encode_question,
        gold="answers",
        classes=(),
        positions=True,
        num_parts=(2,),
        main=-1,
        truncated=1,
        policies=POLICIES,
        options=(TEXT, ROWS, WINDOWS),
    ),
    Kind(
        name="document_qa",
        task="document_question_answering",
        keys=("question", "paragraphs", "annotations"),
        encode=encode_document_question,
        gold="annotations",
        classes=ANSWER_TYPES,
        positions=True,
        num_parts=(2,),
        main=-1,
        truncated=1,
        divided=True,
        policies=POLICIES,
        options=(TEXT, WINDOWS),
    ),
    Kind(
        name="mlm",
        task="masked_document_lm",
        keys=("text", "segments"),
        encode=encode_pretraining,
        policies=POLICIES[:1],
        options=(TEXT, ROWS, PACKING),
        defaults={"pack": True},
        folder="",
    ),
    Kind(
        name="sequence",
        keys=("tokens", "label"),
        divided=True,
        **_SEQUENCES,
    ),
    Kind(
        name="byte_sequence",
        keys=("text", "pixels", "label"),
        alphabet=BYTES,
        **_SEQUENCES,
    ),
    Kind(
        name="byte_pair",
        keys=("text", "second", "label"),
        alphabet=BYTES,
        num_parts=(2,),
        **_SEQUENCES,
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of(name: str | Kind) -> Kind:
    """The kind of this name; ValueError if there is none."""
    if isinstance(name, Kind):
        return name
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}; choose one of {', '.join(KINDS)}")
    return KINDS[name]
