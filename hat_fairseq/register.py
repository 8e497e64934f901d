"""Registers models, tasks, criterions and `--bpe document` with fairseq, by importing the modules that define them."""

import importlib

from . import fairseq_fixes

MODULES = (
    "criterions.chunked_label_smoothed_cross_entropy",
    "criterions.labels",
    "criterions.marker_masked_lm",
    "criterions.self_attention_regularization",
    "models.architectures",
    "tasks.document_to_text",
    "tasks.encoder_task",
    "tasks.masked_document_lm",
    "units.criterion",
    "units.dataset",
)
_called = False


def register() -> None:
    """Applies the corrections of fairseq and imports all modules; a second call does nothing."""
    global _called
    if _called:
        return
    _called = True  # before the imports: the packages of these modules call this function, too
    fairseq_fixes.apply()
    for name in MODULES:
        importlib.import_module(f"hat_fairseq.{name}")
