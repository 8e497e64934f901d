"""The dataset of `document_to_text`: sources and targets, with optional roles."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.tasks.translation import load_langpair_dataset
from torch import Tensor

from .bin_folder import check_rows

logger = logging.getLogger(__name__)


class DocumentPairDataset(LanguagePairDataset):
    """fairseq's pairs plus `roles`, the id of the role of each source token.

    Args:
        roles: the ids of each document, as many as it has tokens, or None.
        split: name under which the share of padding is logged whenever batches are made.
        pair_arguments: `LanguagePairDataset`'s.
    """

    def __init__(
        self,
        *pair_arguments: Any,
        roles: Sequence[Tensor] | None = None,
        split: str = "",
        **pair_options: Any,
    ) -> None:
        super().__init__(*pair_arguments, **pair_options)
        self.roles = roles
        self._split = split
        # `src_sizes` and `tgt_sizes` are larger where --num-batch-buckets pads single documents.
        self._lengths = {"source": pair_arguments[1], "target": pair_arguments[4]}

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
        return example if self.roles is None else {**example, "roles": self.roles[index]}

    def collater(self, samples: list[dict[str, Any]], pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        batch = super().collater(samples, pad_to_length)
        if self.roles is not None and batch:
            roles = {sample["id"]: sample["roles"] for sample in samples}  # the batch is in another order
            batch["net_input"]["roles"] = data_utils.collate_tokens(
                [roles[index] for index in batch["id"].tolist()],
                self.src_dict.pad(),
                left_pad=self.left_pad_source,
                pad_to_length=batch["net_input"]["src_tokens"].size(1),
            )
        return batch


def padding_share(batches: Sequence[np.ndarray], real: np.ndarray, padded: np.ndarray, multiple: int = 1) -> float:
    """Returns the share of padding among all entries of the batches.

    Args:
        batches: the samples of each, none empty.
        real: (samples,) tokens of each, and padded: (samples,) the same or what buckets make of it.
        multiple: every batch is padded to a multiple of this.
    """
    samples, counts = np.concatenate(batches), np.array([len(batch) for batch in batches])
    longest = np.maximum.reduceat(np.asarray(padded)[samples], np.cumsum(counts) - counts)
    entries = int((-(-longest // multiple) * multiple * counts).sum())
    return 1 - int(np.asarray(real)[samples].sum()) / entries


def load_documents(task: Any, folder: str, split: str, combine: bool) -> DocumentPairDataset:
    """Loads a split.

    Args:
        task: a `document_to_text` task: its configuration and dictionaries.
        folder: the bin directory of `hat preprocess`.
        combine: take `split`, `split`1, `split`2... together.

    Raises:
        ValueError: an empty document; the stream of roles belongs to other documents.
        FileNotFoundError: there is no such split, or no stream of roles.
    """
    cfg = task.cfg
    pair = load_langpair_dataset(
        folder,
        split,
        cfg.source_lang,
        task.src_dict,
        cfg.target_lang,
        task.tgt_dict,
        combine=combine,
        dataset_impl=cfg.dataset_impl,
        upsample_primary=cfg.upsample_primary,
        left_pad_source=cfg.left_pad_source,
        left_pad_target=False,
        max_source_positions=cfg.max_source_positions,
        max_target_positions=cfg.max_target_positions,
    )
    check_rows(pair.src, f"{folder}, {split}")
    first = [pair.src[index] for index in range(min(100, len(pair.src)))]
    if first and not any(row.eq(task.src_dict.bos()).any() for row in first):
        logger.warning("%s, %s: no sentence has a marker <s>, so a hierarchy has one sentence only", folder, split)
    roles = _load_stream(task, f"{folder}/{split}", pair.src.sizes, combine) if cfg.role_stream else None
    check_lengths(pair.src_sizes, cfg.max_source_positions, "source", split)
    target_sizes = pair.tgt_sizes
    if target_sizes is not None and split.startswith("test"):  # a reference may be longer than what is generated
        target_sizes = np.minimum(target_sizes, cfg.max_target_positions)
    elif target_sizes is not None:
        check_lengths(target_sizes, cfg.max_target_positions, "target", split)
    return DocumentPairDataset(
        pair.src,
        pair.src_sizes,
        task.src_dict,
        pair.tgt,
        target_sizes,
        task.tgt_dict,
        left_pad_source=cfg.left_pad_source,
        left_pad_target=False,
        num_buckets=cfg.num_batch_buckets,
        shuffle=split != "test",
        pad_to_multiple=cfg.required_seq_len_multiple,
        roles=roles,
        split=split,
    )


def check_lengths(sizes: np.ndarray, limit: int, side: str, split: str) -> None:
    """Raises ValueError for sources or targets with more tokens than the model takes; training would drop them."""
    if long := int((sizes > limit).sum()):
        raise ValueError(
            f"{split}: {long} of {len(sizes)} {side}s are longer than the model takes, {limit}; the longest has "
            f"{sizes.max()} tokens: build a larger model with --max-{side}-positions, or preprocess again, with "
            f"hat preprocess --max-{side}-tokens {limit}"
        )


def _load_stream(task: Any, split_prefix: str, sizes: np.ndarray, combine: bool) -> Any:
    name = task.cfg.role_stream
    prefix = f"{split_prefix}.{name}-None.{name}"
    stream = data_utils.load_indexed_dataset(prefix, task.role_dictionary, task.cfg.dataset_impl, combine)
    if stream is None:
        raise FileNotFoundError(f"{prefix}.idx: the stream of --role-stream {name} is missing; binarise it as well")
    if not np.array_equal(stream.sizes, sizes):
        detail = f"{len(stream.sizes)} documents, not {len(sizes)}"
        if len(stream.sizes) == len(sizes):
            first = int(np.flatnonzero(stream.sizes != sizes)[0])
            detail = f"{stream.sizes[first]} ids for {sizes[first]} tokens in document {first + 1}"
        raise ValueError(f"{prefix}: the stream does not match the source: {detail}; preprocess the data again")
    return stream
