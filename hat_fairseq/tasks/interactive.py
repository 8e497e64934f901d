"""Lines of raw documents to rows of ids, the same way as in preprocessing."""

from __future__ import annotations

import json
import logging
from collections import Counter

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..data.document import Document
from ..data.pipeline import EncodedDocument, TextPipeline

logger = logging.getLogger(__name__)


def parse_line(line: str, number: int, input_format: str) -> Document:
    """Line `number` (from 1) as a document: its text, or with `input_format` json its JSON object (the id may be left
    out)."""
    if input_format == "text":
        return Document(id=str(number), text=line)
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {number}: not JSON ({error}); plain text needs --input-format text") from None
    if isinstance(record, dict):
        record.setdefault("id", str(number))
    return Document.from_json(record, f"line {number}")


def to_ids(
    document: EncodedDocument, dictionary: Dictionary, segments: Dictionary | None
) -> tuple[Tensor, Tensor | None]:
    """An encoded document as rows of ids, each with `</s>` at its end; the second is that of its roles."""
    if segments is not None and document.roles is None:
        raise ValueError(
            f"document {document.id}: the model needs a role for every sentence; give turns with roles as JSON"
        )
    tokens = [dictionary.index(token) for token in document.tokens]
    row = torch.tensor([*tokens, dictionary.eos()])
    if segments is None or document.roles is None:
        return row, None
    return row, torch.tensor([*(segments.index(role) for role in document.roles), segments.eos()])


def encode_lines(
    lines: list[str], input_format: str, pipeline: TextPipeline, dictionary: Dictionary, segments: Dictionary | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Rows of token ids, one per line, and with `segments` rows of segment ids of the same lengths (else none).

    Raises:
        ValueError: a line that is no document, an empty one, or one that the pipeline's policy cuts into several.
    """
    rows, streams = [], []
    before = Counter(pipeline.counts)
    for number, line in enumerate(lines, start=1):
        encoded = pipeline.encode(parse_line(line, number, input_format))
        if len(encoded) != 1:
            raise ValueError(
                f"line {number}: {len(encoded)} chunks; fairseq-interactive takes one input a line: use "
                "`hat summarize`, which joins chunks again, or preprocess with another policy for long sources"
            )
        row, stream = to_ids(encoded[0], dictionary, segments)
        rows.append(row)
        if stream is not None:
            streams.append(stream)
    changed = pipeline.counts - before
    if changed:
        logger.warning("changed on the way in: %s", ", ".join(f"{name} {n}" for name, n in sorted(changed.items())))
    return rows, streams
