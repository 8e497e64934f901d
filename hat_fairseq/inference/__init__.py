"""Inference with trained models, in Python and as commands: texts, labels and answers for documents."""

from .labels import DocumentClassifier
from .texts import DocumentToText

__all__ = ["DocumentClassifier", "DocumentToText"]
