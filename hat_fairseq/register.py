"""Registers everything with fairseq: importing a module of models, tasks, criterions or decoders does."""

from __future__ import annotations

import importlib

from . import compat

MODULES = (
    "criterions.answer_spans",
    "criterions.chunked_label_smoothed_cross_entropy",
    "criterions.document_labels",
    "criterions.masked_lm_from_sentences",
    "models.hat_bart",
    "models.hat_roberta",
    "models.hat_transformer",
    "models.hierarchical_transformer",
    "tasks.document_bpe",
    "tasks.document_classification",
    "tasks.document_to_text",
    "tasks.masked_document_lm",
    "tasks.multiple_choice",
    "tasks.question_answering",
    "tasks.segment_classification",
    "tasks.token_classification",
)


def register() -> None:
    """Apply the work-arounds and import all of them; a second call does nothing."""
    compat.apply()
    for name in MODULES:
        importlib.import_module(f"hat_fairseq.{name}")
