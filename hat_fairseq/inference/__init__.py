"""Inference with trained models, in Python and as commands: texts, labels and answers for documents."""

from typing import Any

__all__ = ["Predictor", "DocumentToText"]  # noqa: F822 - imported at their first use


def __getattr__(name: str) -> Any:
    """Imports one of the classes: so that an import is fast."""
    if name == "DocumentToText":
        from .texts import DocumentToText

        return DocumentToText
    if name == "Predictor":
        from .labels import Predictor

        return Predictor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
