"""What a document is once it consists of tokens."""

from __future__ import annotations

from dataclasses import dataclass

BOS = "<s>"  # before each sentence


@dataclass(frozen=True)
class EncodedDocument:
    """A document as the model reads it, or one chunk of it.

    Args:
        id: the document's id.
        chunk: its number from 0.
        num_chunks: how many chunks the document has.
        tokens: BPE tokens with ``<s>`` before each sentence; never empty.
        roles: the label of the role stream for each token, markers included; None without role stream.
    """

    id: str
    chunk: int
    num_chunks: int
    tokens: list[str]
    roles: list[str] | None

    @property
    def sentences(self) -> int:
        """How many sentences, or pieces of sentences longer than a chunk, it has: the number of its markers."""
        return self.tokens.count(BOS)


@dataclass(frozen=True)
class EncodedPair:
    """A document with its target, ready for training.

    Args:
        parts: the document, or its chunks.
        targets: the target of each part: for aligned documents in chunks its own, else the whole one each time.
        source_tokens: BPE tokens of the whole text before anything was cut, without markers.
        target_tokens: likewise for the target, without separators.
    """

    parts: list[EncodedDocument]
    targets: list[list[str]]
    source_tokens: int
    target_tokens: int
