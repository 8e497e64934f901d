"""Raw documents to rows of ids as in preprocessing, for fairseq-interactive and `hat summarize`."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary, ListDataset
from torch import Tensor

from ..data.document import Document
from ..data.pipeline import EncodedDocument
from .document_dataset import PrefixDataset, shortened_sizes

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EncodedRows:
    """Rows of token ids, of segment ids of the same lengths (or none), and the document that each row belongs to."""

    tokens: list[Tensor]
    segments: list[Tensor]
    owners: list[int]


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


def encode_documents(documents: Iterable[Document], task: Any) -> EncodedRows:
    """Documents to rows of ids: the pipeline of the training data, then the task's own policy for long sources.

    Args:
        task: a `document_to_text` task with a pipeline.
    Raises:
        ValueError: an empty document, one that is too long under the policy `error`, or one without the roles it needs.
    """
    pipeline, dictionary, cfg = task.pipeline, task.source_dictionary, task.cfg
    before = Counter(pipeline.counts)
    rows, streams, owners = [], [], []
    for number, document in enumerate(documents):
        for encoded in pipeline.encode(document):
            row, stream = to_ids(encoded, dictionary, task.segment_dictionary)
            rows.append(row)
            streams += [] if stream is None else [stream]
            owners.append(number)
    changed = pipeline.counts - before
    changed["source_tokens_unknown_to_dictionary"] = sum(int(row.eq(dictionary.unk()).sum()) for row in rows)
    sizes = [row.numel() for row in rows]
    if rows:
        data = ListDataset(rows, sizes)
        limits = cfg.max_source_positions, str(cfg.long_source), dictionary.bos()
        kept, cost = shortened_sizes(data, *limits, "input")
        changed += Counter({f"source_{name}": number for name, number in cost.items()})
        rows = list(PrefixDataset(data, kept, dictionary.eos()))
        streams = list(PrefixDataset(ListDataset(streams, sizes), kept, dictionary.eos())) if streams else []
    if +changed:
        logger.warning(
            "input changed by preprocessing: %s", ", ".join(f"{name} {n}" for name, n in sorted((+changed).items()))
        )
    return EncodedRows(rows, streams, owners)
