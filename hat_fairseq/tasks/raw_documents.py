"""Raw documents to rows of ids as in preprocessing, and generated tokens to text (`--bpe document`)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary, ListDataset
from fairseq.data.encoders import register_bpe
from torch import Tensor

from ..data.pipeline import TextPipeline
from ..data.record import Record
from .bin_folder import check_known
from .config import DocumentBpeConfig
from .cut_rows import CutRows, cut_documents, warn


@dataclass(frozen=True)
class EncodedRows:
    """Rows of token ids, of segment ids of the same lengths (or none), and the document that each row belongs to."""

    tokens: list[Tensor]
    roles: list[Tensor]
    owners: list[int]


def row_of(tokens: Iterable[str], dictionary: Dictionary) -> Tensor:
    """(T,) ids of tokens, `</s>` at the end."""
    return torch.tensor([*map(dictionary.index, tokens), dictionary.eos()])


def indexed(rows: Sequence[Tensor]) -> ListDataset:
    """Rows as a dataset with `sizes`."""
    return ListDataset(rows, [row.numel() for row in rows])


def encode_documents(documents: Iterable[Record], task: Any) -> EncodedRows:
    """Encodes documents with the pipeline of the training data, then applies the task's policy for long sources.

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
            rows.append(row_of(encoded.tokens, dictionary))
            owners.append(number)
            if task.role_dictionary is None:
                continue
            if "role" not in encoded.streams:
                raise ValueError(
                    f"document {encoded.id}: the model needs a role for every sentence; give turns with roles as JSON"
                )
            streams.append(row_of(encoded.streams["role"], task.role_dictionary))
    limits = cfg.max_source_positions, "error", dictionary.bos()
    removed, cost = cut_documents(indexed(rows), *limits, "input")
    cut = Counter({f"source_{name}": number for name, number in cost.items()})
    warn_of_changes(pipeline.counts - before + cut, rows, dictionary)
    roles = list(CutRows(indexed(streams), removed)) if streams else []
    return EncodedRows(list(CutRows(indexed(rows), removed)), roles, owners)


def warn_of_changes(changed: Counter[str], rows: Iterable[Tensor], dictionary: Dictionary) -> None:
    """Logs the counts of what a pipeline has changed, and of the unknown tokens in its rows.

    Raises:
        ValueError: see `check_known`.
    """
    check_known(rows, dictionary, "the input")
    changed["source_tokens_unknown_to_dictionary"] = sum(int(row.eq(dictionary.unk()).sum()) for row in rows)
    warn("input changed by preprocessing", changed)


@register_bpe("document", dataclass=DocumentBpeConfig)
class DocumentBpe:
    """Turns generated tokens into text with the pipeline that made the training data.

    fairseq-generate then prints final text on its D- lines: BPE undone, control tokens
    restored. The task encodes documents by itself.
    """

    def __init__(self, config: DocumentBpeConfig) -> None:
        if not config.document_pipeline:
            raise ValueError("--bpe document needs --document-pipeline DIR, the bin directory of `hat preprocess`")
        self.decode = TextPipeline.load(config.document_pipeline).decode

    def encode(self, text: str) -> str:
        return text
