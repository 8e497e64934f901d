"""Rows with more tokens than the model has positions: an error, or truncated and counted.

A document is truncated to a prefix. A labelled row is `<s> ... [</s> </s> <s> ...] </s>`; the end of one of its parts
is truncated. `hat preprocess --max-source-tokens` has more policies.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

from ..data.long_input import LongInputError, fit

logger = logging.getLogger(__name__)

SOURCE_POLICIES = ("error", "truncate", "truncate-sentences")  # chunks have to be made before binarisation
ROW_POLICIES = TARGET_POLICIES = ("error", "truncate")


class CutRows(FairseqDataset):
    """Rows without the tokens that are truncated.

    Args:
        dataset: indexed (T,) token ids, with `sizes`.
        removed: the slice of tokens to remove from each over-long row, by the number of the row.
    """

    def __init__(self, dataset: Any, removed: Mapping[int, slice]) -> None:
        super().__init__()
        self.dataset, self.removed = dataset, removed
        self._sizes = np.array(dataset.sizes, dtype=np.int64)
        for index, piece in removed.items():
            self._sizes[index] -= piece.stop - piece.start

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Any:
        tokens = self.dataset[index]
        return tokens[torch.from_numpy(self.kept(index, len(tokens)))] if index in self.removed else tokens

    def kept(self, index: int, length: int) -> np.ndarray:
        """(length,) bool, False for the removed tokens of a row."""
        keep = np.ones(length, dtype=bool)
        keep[self.removed.get(index, slice(0, 0))] = False
        return keep

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])


def cut_documents(
    documents: Any, max_positions: int, policy: str, bos: int, what: str
) -> tuple[dict[int, slice], Counter[str]]:
    """The tokens to remove from each over-long document, and counts of what is truncated; see `data.long_input.fit`.

    Args:
        documents: ids with `sizes`, each ending in `</s>`, which stays.
        what: name of the documents in messages: `train source document`.
    Raises:
        LongInputError: a document is too long under the policy `error`.
        ValueError: an empty document.
    """
    offered = (TARGET_POLICIES if what.endswith("target") else SOURCE_POLICIES)[1:]
    counts: Counter[str] = Counter()

    def remove(tokens: Tensor) -> slice:
        (kept, *_), cost = fit(tokens[:-1].eq(bos).numpy(), max_positions - 1, policy, offered)
        counts.update(cost)
        return slice(kept.stop, len(tokens) - 1)

    return _cut(documents, max_positions, remove, f"{what} {{}}"), counts


def cut_rows(
    rows: Any,
    safe_length: float,
    fits: Callable[[Tensor], bool],
    policy: str,
    part: str,
    dictionary: Dictionary,
    what: str,
) -> tuple[dict[int, slice], Counter[str]]:
    """The tokens to remove from each over-long row, and counts of what is truncated.

    Args:
        rows: indexed (T,) token ids with `sizes`, each ending in `</s>`.
        safe_length: rows of up to this many tokens fit and are not checked.
        fits: whether a row fits the model.
        policy: one of `ROW_POLICIES`.
        part: which part is truncated: `longest`, `first` or `last`.
        what: name of the split, for messages.
    Raises:
        LongInputError: a row is too long under the policy `error`, or could not be shortened enough.
        ValueError: an empty row.
    """
    counts: Counter[str] = Counter()

    def remove(tokens: Tensor) -> slice | None:
        if fits(tokens):
            return None
        problem = f"{len(tokens)} tokens are more than the model takes"
        if policy == "error":
            raise LongInputError(
                f"{problem}; build a larger one (--max-positions or --max-segments), preprocess with "
                "--max-source-tokens, or give --long-source truncate"
            )
        cut = _shortest_cut(tokens, fits, truncated_part(tokens, part, dictionary.eos()))
        if cut is None:
            raise LongInputError(f"{problem}, even without the part that may be truncated; build a larger model")
        lost = tokens[cut]
        sentences = int(lost.eq(dictionary.bos()).sum())
        counts.update(rows_over_limit=1, tokens_truncated=len(lost), sentences_truncated=sentences)
        return cut

    return _cut(rows, safe_length, remove, f"row {{}} of {what}"), counts


def _cut(rows: Any, safe_length: float, remove: Callable[[Tensor], slice | None], place: str) -> dict[int, slice]:
    sizes = np.asarray(rows.sizes)
    if (sizes < 2).any():
        where = place.format(int(np.flatnonzero(sizes < 2)[0]) + 1)
        raise ValueError(f"{where} is empty; preprocess the data again")
    removed = {}
    for index in np.flatnonzero(sizes > safe_length).tolist():
        try:
            piece = remove(rows[index])
        except LongInputError as error:
            raise LongInputError(f"{place.format(index + 1)}: {error}") from None
        if piece is not None:
            removed[index] = piece
    return removed


def truncated_part(tokens: Tensor, part: str, eos: int) -> slice:
    """The position of the part to truncate, without separators."""
    ends = tokens.eq(eos).nonzero().flatten().tolist()
    parts = [slice(0, ends[0])]
    if len(ends) > 1:
        parts.append(slice(ends[1] + 1, len(tokens) - 1))
    if part == "longest":
        return max(parts, key=lambda piece: piece.stop - piece.start)
    return parts[0] if part == "first" else parts[-1]


def _shortest_cut(tokens: Tensor, fits: Callable[[Tensor], bool], piece: slice) -> slice | None:
    """The shortest end of `piece` without which the row fits; its first token stays. None if there is no such end."""

    def fits_from(stop: int) -> bool:
        return fits(torch.cat([tokens[:stop], tokens[piece.stop :]]))

    enough, too_much = piece.start + 1, piece.stop
    if not fits_from(enough):
        return None
    while too_much - enough > 1:
        middle = (enough + too_much) // 2
        enough, too_much = (middle, too_much) if fits_from(middle) else (enough, middle)
    return slice(enough, piece.stop)


def warn(message: str, counts: Counter[str]) -> None:
    """Logs the counts above 0 after a message; nothing if there are none."""
    if +counts:
        logger.warning("%s: %s", message, ", ".join(f"{name} {count}" for name, count in sorted((+counts).items())))
