"""Inference with trained models, in Python and as commands: texts, labels and answers for documents."""

from .labels import Predictor
from .texts import DocumentToText

__all__ = ["DocumentToText", "Predictor"]
