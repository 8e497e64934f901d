"""Trained models in Python and on the command line: texts, labels and answers for documents."""

from .labels import DocumentClassifier
from .texts import DocumentToText

__all__ = ["DocumentClassifier", "DocumentToText"]
