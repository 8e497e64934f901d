"""Rows of ids of raw documents, and generated tokens to text (`--bpe document`)."""

from collections.abc import Iterable, Sequence

import torch
from fairseq.data import Dictionary, ListDataset
from fairseq.data.encoders import register_bpe
from torch import Tensor

from ..data.pipeline import TextPipeline
from .config import DocumentBpeConfig


def row_of(tokens: Iterable[str], dictionary: Dictionary) -> Tensor:
    """(T,) ids of tokens, `</s>` at the end."""
    return torch.tensor([*map(dictionary.index, tokens), dictionary.eos()])


def indexed(rows: Sequence[Tensor]) -> ListDataset:
    """Rows as a dataset with `sizes`."""
    return ListDataset(rows, [row.numel() for row in rows])


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
