"""Datasets of binarised documents: truncated to the model's length, with an optional parallel stream of segments."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset, data_utils
from torch import Tensor

from ..data.long_source import LongSourceError, fit

logger = logging.getLogger(__name__)


class PrefixDataset(BaseWrapperDataset):
    """Documents truncated to a prefix, with `</s>` kept at the end.

    Args:
        dataset: documents of ids, each ending in `eos`.
        sizes: (documents,) tokens to keep of each, `eos` included.
        eos: id of the end-of-sentence token.
    """

    def __init__(self, dataset: FairseqDataset, sizes: np.ndarray, eos: int) -> None:
        super().__init__(dataset)
        self._sizes, self._eos = sizes, eos

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes

    def __getitem__(self, index: int) -> Tensor:
        tokens, size = self.dataset[index], int(self._sizes[index])
        if len(tokens) == size:
            return tokens
        return torch.cat([tokens[: size - 1], tokens.new_tensor([self._eos])])

    def num_tokens(self, index: int) -> int:
        return int(self._sizes[index])

    def size(self, index: int) -> int:
        return int(self._sizes[index])


SOURCE_POLICIES = ("error", "truncate", "truncate-sentences")  # chunks have to be made before binarisation
TARGET_POLICIES = ("error", "truncate")


def shortened_sizes(
    dataset: FairseqDataset, max_positions: int, policy: str, bos: int, what: str
) -> tuple[np.ndarray, Counter[str]]:
    """The number of tokens of each document that fit, final `</s>` included, and counts of what is truncated.

    Only documents over the limit are read.

    Raises:
        LongSourceError: a document is too long under the policy `error`; it is named by its place.
        ValueError: an empty document.
    """
    offered = (TARGET_POLICIES if what.endswith("target") else SOURCE_POLICIES)[1:]
    sizes = np.array(dataset.sizes, dtype=np.int64)
    if (sizes < 2).any():
        raise ValueError(f"{what} {int(np.flatnonzero(sizes < 2)[0]) + 1} is empty; preprocess the documents again")
    counts: Counter[str] = Counter()
    for index in np.flatnonzero(sizes > max_positions):
        try:
            kept, cost = fit(dataset[int(index)][:-1].eq(bos).numpy(), max_positions - 1, policy, offered)
        except LongSourceError as error:
            raise LongSourceError(f"{what} {index + 1}: {error}") from None
        sizes[index] = kept[0].stop + 1
        counts += cost
    return sizes, counts


def padding_share(batches: Sequence[np.ndarray], real: np.ndarray, padded: np.ndarray, multiple: int = 1) -> float:
    """The share of padding among all entries of the batches.

    Args:
        batches: the samples of each, none empty.
        real: (samples,) tokens of each, and padded: (samples,) the same or what buckets make of it.
        multiple: every batch is padded to a multiple of this.
    """
    samples, counts = np.concatenate(batches), np.array([len(batch) for batch in batches])
    longest = np.maximum.reduceat(np.asarray(padded)[samples], np.cumsum(counts) - counts)
    entries = int((-(-longest // multiple) * multiple * counts).sum())
    return 1 - int(np.asarray(real)[samples].sum()) / entries


class DocumentPairDataset(LanguagePairDataset):
    """fairseq's pairs plus `segments`, one id per source token.

    Args:
        segments: documents of segment ids, each as long as its source, or None.
        subset: name that goes into every batch, so that a meter knows what its ids are about; None for no name.
        skipped: samples that are in no batch; the others keep their ids.
        split: name under which the share of padding is logged whenever batches are made.
        pair_arguments: `LanguagePairDataset`'s.
    """

    def __init__(
        self,
        *pair_arguments: Any,
        segments: Sequence[Tensor] | None = None,
        subset: str | None = None,
        skipped: frozenset[int] = frozenset(),
        split: str = "",
        **pair_options: Any,
    ) -> None:
        super().__init__(*pair_arguments, **pair_options)
        self.segments, self.subset, self._skipped = segments, subset, sorted(skipped)
        self._split = split
        # `src_sizes` and `tgt_sizes` are larger where --num-batch-buckets pads single documents.
        self._lengths = {"source": pair_arguments[1], "target": pair_arguments[4]}

    def ordered_indices(self) -> np.ndarray:
        indices = super().ordered_indices()
        return indices[~np.isin(indices, self._skipped)]

    def batch_by_size(self, indices: np.ndarray, *limits: Any, **more_limits: Any) -> list[np.ndarray]:
        """fairseq's batches; `indices` are in order of source length (then target length), so little is padded."""
        batches = super().batch_by_size(indices, *limits, **more_limits)
        if len(batches):
            padded = {"source": self.src_sizes, "target": self.tgt_sizes}
            shares = [
                f"{padding_share(batches, real, padded[side], self.pad_to_multiple):.1%} of {side} tokens"
                for side, real in self._lengths.items()
                if real is not None
            ]
            logger.info("%s: %d batches, padding %s", self._split, len(batches), ", ".join(shares))
        return batches

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = super().__getitem__(index)
        if self.segments is not None:
            example["segments"] = self.segments[index]
        return example

    def collater(self, samples: list[dict[str, Any]], pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        batch = super().collater(samples, pad_to_length)
        if self.subset is not None and batch:
            batch["subset"] = self.subset
        if self.segments is not None and batch:
            segments = {sample["id"]: sample["segments"] for sample in samples}  # the batch is in another order
            batch["net_input"]["segments"] = data_utils.collate_tokens(
                [segments[index] for index in batch["id"].tolist()],
                self.src_dict.pad(),
                left_pad=self.left_pad_source,
                pad_to_length=batch["net_input"]["src_tokens"].size(1),
            )
        return batch
