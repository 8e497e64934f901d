"""The kind of data in a directory, as recorded by `hat preprocess`."""

from __future__ import annotations

import json
from pathlib import Path

from ..data.pipeline import FILE_NAME, TextPipeline


def load_pipeline(data: str | Path, kind: str) -> TextPipeline | None:
    """The text pipeline of a `bin` directory; None for data that `hat preprocess` did not make.

    Args:
        data: the directory.
        kind: what a task reads: `text`, `classification`, ..., `mlm`.
    Raises:
        ValueError: it is of another kind, or its files cannot be read.
    """
    check_kind(data, kind)
    return TextPipeline.load(data) if (Path(data) / FILE_NAME).exists() else None


def check_kind(data: str | Path, kind: str) -> None:
    """Checks the kind of data in a directory.

    Raises:
        ValueError: the data is of another kind.
    """
    path = Path(data) / FILE_NAME
    if not path.exists():
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["settings"].get("task", "text")
    except (ValueError, KeyError, AttributeError):
        return  # loading the pipeline says what is wrong with it
    if found != kind:
        raise ValueError(
            f"{data} holds data of the kind {found!r}, and this task reads {kind!r}: use the task {TASKS.get(found)}, "
            "or other data"
        )


# The task that reads each kind.
TASKS = {
    "text": "document_to_text",
    "mlm": "masked_document_lm",
    "classification": "document_classification",
    "choice": "multiple_choice",
    "segments": "segment_classification",
    "tokens": "token_classification",
    "qa": "question_answering",
}
