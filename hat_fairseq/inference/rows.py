"""Raw documents as rows of ids, in the way in which the training data were made."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..data.dictionary import EOS, PAD, UNKNOWN, Dictionary, check_known
from ..data.long_input import LongInputError
from ..data.record import Record
from .loading import Loaded

logger = logging.getLogger(__name__)

Line = dict[str, Any]  # a line of output


@dataclass(frozen=True)
class EncodedRows:
    """Rows of token ids, of segment ids of the same lengths (or none), and the document that each row belongs to."""

    tokens: list[Tensor]
    roles: list[Tensor]
    owners: list[int]


def row_of(tokens: Iterable[str], dictionary: Dictionary) -> Tensor:
    """(T,) ids of tokens, `</s>` at the end."""
    return torch.tensor([*map(dictionary.numbers.__getitem__, tokens), EOS])


def padded(rows: Sequence[Tensor]) -> Tensor:
    """(B, T) ids of rows, padded on the right."""
    return pad_sequence(list(rows), batch_first=True, padding_value=PAD)


def encode_documents(documents: Iterable[Record], loaded: Loaded) -> EncodedRows:
    """Encodes documents with the pipeline of the training data, and logs what that changes.

    Raises:
        ValueError: an empty document, one that is longer than the model takes, or one without the roles it needs.
    """
    pipeline = loaded.pipeline
    before = Counter(pipeline.counts)
    rows, streams, owners = [], [], []
    for number, document in enumerate(documents):
        for encoded in pipeline.encode(document):
            rows.append(row_of(encoded.tokens, loaded.source))
            check_length(document, rows[-1], loaded)
            owners.append(number)
            if loaded.roles is None:
                continue
            if "role" not in encoded.streams:
                raise ValueError(
                    f"document {encoded.id}: the model needs a role for every sentence; give turns with roles as JSON"
                )
            streams.append(row_of(encoded.streams["role"], loaded.roles))
    warn_of_changes(pipeline.counts - before, rows)
    return EncodedRows(rows, streams, owners)


def check_length(record: Record, tokens: Tensor, loaded: Loaded) -> None:
    """Raises LongInputError for a row of (T,) token ids that is longer than the models take."""
    encoders = [model.core for model in loaded.models if hasattr(model, "core")]
    if len(tokens) > loaded.longest or not all(encoder.fits(tokens) for encoder in encoders):
        raise LongInputError(
            f"{record.name}: {len(tokens)} tokens with </s> are more than the model takes, {loaded.longest}. Train it "
            "on data of `hat preprocess --max-source-tokens N --long-source truncate`"
        )


def warn_of_changes(changed: Counter[str], rows: Iterable[Tensor]) -> None:
    """Logs the counts of what a pipeline has changed, and of the unknown tokens in its rows.

    Raises:
        ValueError: see `check_known`.
    """
    rows = list(rows)
    check_known(rows, "the input")
    changed["source_tokens_unknown_to_dictionary"] = sum(int(row.eq(UNKNOWN).sum()) for row in rows)
    if +changed:
        counts = ", ".join(f"{name} {count}" for name, count in sorted((+changed).items()))
        logger.warning("input changed by preprocessing: %s", counts)
