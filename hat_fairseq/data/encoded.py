"""Encoded documents and examples."""

from dataclasses import dataclass

BOS = "<s>"  # before each sentence
EOS = "</s>"  # two of them between the parts of a row, as in RoBERTa; one between documents


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


@dataclass(frozen=True)
class EncodedRow:
    """An example as the model reads it, or one choice or one window of it: one line of ``text/SPLIT.input0``.

    Args:
        id: the example's id.
        part: number of the choice or the window, from 0.
        num_parts: how many choices or windows the example has.
        tokens: ``<s> s1 <s> s2 [</s> </s> <s> t1 <s> t2]``, without the final ``</s>`` that fairseq-preprocess appends.
        label: the tokens of its line in ``text/SPLIT.label`` (see ``labels.label_token``), or None if it is unlabelled:
            the label of a document; ``right`` or ``wrong``; one for each ``<s>``; one for each token, ``<pad>`` where
            there is none; ``START END``, positions in ``tokens``.
        spans: ``qa`` only: for each token the characters (begin, end) of the context as given that it stands for, None
            for tokens that stand for none of them. ``context[spans[start][0] : spans[end][1]]`` is an answer.
    """

    id: str
    part: int
    num_parts: int
    tokens: list[str]
    label: list[str] | None = None
    spans: list[tuple[int, int] | None] | None = None

    @property
    def segments(self) -> int:
        """The number of its markers."""
        return self.tokens.count(BOS)
