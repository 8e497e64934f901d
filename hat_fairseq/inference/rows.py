"""Raw documents as rows of ids, in the way in which the training data were made."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..data.dictionary import EOS, MAX_UNKNOWN, PAD, UNKNOWN, WHY_UNKNOWN, Dictionary
from ..data.kinds.documents import check_roles
from ..data.long_input import LongInputError, all_truncated
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.rows import Row
from ..options import OptionError, check_values, option
from .loaded import Loaded

logger = logging.getLogger(__name__)

Line = dict[str, Any]  # a line of output
BATCH_SIZE, BATCH_TOKENS = 16, 24_576  # of a batch whose size nobody states; more samples are no faster on a CPU
OTHER_SEGMENTS = "other_segments"  # a count of texts with another number of segments than their source
READ, UNREADABLE = "documents_read", "documents_mostly_unknown"  # counts; of the latter the dictionary has few tokens
ROWS, TRUNCATED = "rows_read", "rows_over_limit"


class Encoded(NamedTuple):
    """A row of a document, its (T,) token ids, and its (T,) role ids where the model reads roles."""

    row: Row
    tokens: Tensor
    roles: Tensor | None


def row_of(tokens: Iterable[str], dictionary: Dictionary) -> Tensor:
    """Returns (T,) ids of tokens, `</s>` at the end."""
    return torch.tensor([*map(dictionary.ids.__getitem__, tokens), EOS])


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Pads rows on the right: (B, T) ids."""
    return pad_sequence(list(rows), batch_first=True, padding_value=PAD)


def encode_documents(documents: Iterable[Record], loaded: Loaded) -> list[list[Encoded]]:
    """Encodes documents with the pipeline of the training data, whose counts say what that changes.

    Returns:
        the rows of each document.
    Raises:
        ValueError: an empty document, one that is longer than the model takes, or one without the roles it needs.
    """
    documents = list(documents)
    for document in documents if loaded.roles is not None else ():  # before running text is divided, which has none
        loaded.pipeline.kind.check_texts(document)
        check_roles(document)
    encoded = [[_encode(row, document, loaded) for row in loaded.pipeline.encode(document)] for document in documents]
    for document, rows in zip(documents, encoded, strict=True):
        count_unknown(document.name, [each.tokens for each in rows], loaded.pipeline)
    return encoded


def count_unknown(name: str, rows: Sequence[Tensor], pipeline: TextPipeline) -> None:
    """Counts the tokens of a document that the dictionary does not have, and names it if they are most.

    `rows`: of ids. Whether that is so of all documents, `check_readable` tells when all were read.
    """
    tokens, unknown = sum(map(len, rows)), sum(int(row.eq(UNKNOWN).sum()) for row in rows)
    pipeline.counts.update({READ: 1, ROWS: len(rows), "source_tokens_unknown_to_dictionary": unknown})
    if unknown > MAX_UNKNOWN * tokens:
        logger.warning(
            "%s: %d of %d tokens are not in the dictionary; its result is worth little", name, unknown, tokens
        )
        pipeline.counts[UNREADABLE] += 1


def check_readable(counts: Mapping[str, int]) -> None:
    """Raises ValueError if the dictionary lacks most tokens of each document; `counts`: since the first of them."""
    if 0 < counts.get(READ, 0) == counts.get(UNREADABLE, 0):
        raise ValueError(f"the input: most tokens of each document are not in the dictionary: {WHY_UNKNOWN}")


def _encode(row: Row, document: Record, loaded: Loaded) -> Encoded:
    tokens = row_of(row.tokens, loaded.source)
    encoders = [model.core for model in loaded.models if hasattr(model, "core")]
    if len(tokens) > loaded.longest or not all(encoder.fits(tokens) for encoder in encoders):
        raise LongInputError(
            f"{document.name}: {len(tokens)} tokens with </s> are more than the model takes, {loaded.longest}. "
            "Train it on data of `hat preprocess --max-source-tokens N --long-source truncate`"
        )
    if loaded.roles is None:
        return Encoded(row, tokens, None)
    return Encoded(row, tokens, row_of(row.streams["role"], loaded.roles))


@contextmanager
def logged_changes(pipeline: TextPipeline) -> Iterator[None]:
    """Logs what the pipeline changes in the block; ValueError if it could read no document there."""
    before = Counter(pipeline.counts)
    yield
    check_readable(changes := pipeline.counts - before)
    log_changes(changes, pipeline.needed)


def log_changes(counts: Counter[str], needed: Mapping[str, int]) -> None:
    """Logs counts of changes, if there are any, and whether all rows were truncated; `needed`: see `RowEncoder`."""
    names = sorted(name for name, count in counts.items() if count and name not in (OTHER_SEGMENTS, READ, ROWS))
    listed = ", ".join(f"{name.replace('_', ' ')}: {counts[name]}" for name in names)
    if listed:
        logger.warning("input changed by preprocessing: %s", listed)
    if counts[ROWS] and (note := all_truncated(counts[ROWS], counts[TRUNCATED], needed)):
        logger.warning("%s", note)


@dataclass
class BatchOptions:
    """The sizes of batches; see `batches`."""

    batch_size: int | None = option(
        None,
        f"the maximum number of samples in a batch (default: {BATCH_SIZE}, with at most {BATCH_TOKENS} tokens if they "
        "are several)",
        least=1,
    )
    max_tokens: int | None = option(None, "the maximum number of tokens in a batch, with padding", least=1)


def check_batches(batch_size: int | None, max_tokens: int | None = None) -> None:
    """Raises ValueError for a size of batches that is none."""
    check_values(BatchOptions, BatchOptions(batch_size, max_tokens))


def longest_first(records: Iterable[Record]) -> list[Record]:
    """Sorts records by the lengths of their texts."""
    return sorted(records, key=lambda record: -sum(len(str(text)) for text in record.texts()))


def batches(
    sizes: Sequence[int], batch_size: int | None, max_tokens: int | None, by_size: bool = True
) -> Iterator[list[int]]:
    """Yields batches of the numbers of samples.

    A batch has at most as much padding as tokens: one long sample does not lengthen the short ones of its batch.

    Args:
        sizes: tokens of each sample.
        batch_size: most samples of a batch; None: any number with `max_tokens`.
        max_tokens: most tokens of a batch with padding, at least those of one sample; None: any number with
            `batch_size`. Without both: `BATCH_SIZE` samples, and `BATCH_TOKENS` tokens or one sample.
        by_size: samples of similar size are together; else they stay in order.
    """
    check_batches(batch_size, max_tokens)
    if max_tokens is not None and max_tokens < (longest := max(sizes)):
        raise OptionError("{max_tokens} is too low: one sample takes {} tokens", longest, max_tokens=max_tokens)
    if batch_size is None and max_tokens is None:
        batch_size, max_tokens = BATCH_SIZE, BATCH_TOKENS
    batch: list[int] = []
    tokens = width = 0
    for index in sorted(range(len(sizes)), key=sizes.__getitem__) if by_size else range(len(sizes)):
        size = sizes[index]
        padded = (len(batch) + 1) * max(width, size)
        is_full = len(batch) == batch_size or (max_tokens is not None and padded > max_tokens)
        if batch and (is_full or 2 * (tokens + size) < padded):
            yield batch
            batch, tokens, width = [], 0, 0
        batch.append(index)
        tokens, width = tokens + size, max(width, size)
    if batch:
        yield batch
