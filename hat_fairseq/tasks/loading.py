"""A binarised subset as a dataset: truncated to the model's length, with its role stream, without skipped samples."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import data_utils
from fairseq.tasks.translation import load_langpair_dataset

from ..data.files import read_lines
from .document_dataset import DocumentPairDataset, PrefixDataset, shortened_sizes

logger = logging.getLogger(__name__)


def load_documents(task: Any, folder: str, split: str, combine: bool) -> DocumentPairDataset:
    """Loads a split, truncates what is too long, and logs how much.

    Args:
        task: a `document_to_text` task: its configuration and dictionaries.
        folder: the bin directory of `hat preprocess`.
        combine: take `split`, `split`1, `split`2... together.

    Raises:
        ValueError: a document is too long under the policy `error`; the stream of roles belongs to other documents; a
            number of --skip-samples that no sample has.
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
    source_end, target_end = task.src_dict.eos(), task.tgt_dict.eos()
    limits = cfg.max_source_positions, str(cfg.long_source), task.src_dict.bos()
    source = PrefixDataset(pair.src, _kept_sizes(pair.src, limits, split, "source document"), source_end)
    target, segments = None, None
    if pair.tgt is not None:
        limits = cfg.max_target_positions, str(cfg.long_target), task.tgt_dict.bos()
        target = PrefixDataset(pair.tgt, _kept_sizes(pair.tgt, limits, split, "target"), target_end)
    if cfg.role_stream:
        stream = _load_stream(task, f"{folder}/{split}", pair.src.sizes, combine)
        segments = PrefixDataset(stream, source.sizes, source_end)
    return DocumentPairDataset(
        source,
        source.sizes,
        task.src_dict,
        target,
        None if target is None else target.sizes,
        task.tgt_dict,
        left_pad_source=cfg.left_pad_source,
        left_pad_target=False,
        num_buckets=cfg.num_batch_buckets,
        shuffle=split != "test",
        pad_to_multiple=cfg.required_seq_len_multiple,
        segments=segments,
        subset=split if cfg.eval_doc_bleu else None,
        split=split,
        skipped=read_sample_numbers(cfg.skip_samples, len(source)) if cfg.skip_samples else frozenset(),
    )


def read_sample_numbers(path: str | Path, num_samples: int) -> frozenset[int]:
    """The numbers in a file, one per line.

    Raises:
        ValueError: with file and line: not the number of a sample, 0 to num_samples - 1.
    """
    numbers = set()
    for line_number, line in read_lines(path):
        if not (line.isascii() and line.isdigit() and int(line) < num_samples):
            last = num_samples - 1
            raise ValueError(f"{path}:{line_number}: expected the number of a sample, 0 to {last}, found {line[:80]!r}")
        numbers.add(int(line))
    return frozenset(numbers)


def _kept_sizes(dataset: Any, limits: tuple[int, str, int], split: str, what: str) -> np.ndarray:
    """How many tokens of each document are kept; what is cut is reported. `limits`: tokens, policy, id of `<s>`."""
    sizes, cost = shortened_sizes(dataset, *limits, f"{split} {what}")
    _report(split, what.split()[0], limits[1], cost)
    return sizes


def _report(split: str, side: str, policy: str, cost: Counter[str]) -> None:
    if cost:
        details = ", ".join(f"{name} {count}" for name, count in sorted(cost.items()))
        logger.warning("%s %s: longer than the limit, policy %s: %s", split, side, policy, details)


def _load_stream(task: Any, split_prefix: str, sizes: np.ndarray, combine: bool) -> Any:
    name = task.cfg.role_stream
    prefix = f"{split_prefix}.{name}-None.{name}"
    stream = data_utils.load_indexed_dataset(prefix, task.segment_dictionary, task.cfg.dataset_impl, combine)
    if stream is None:
        raise FileNotFoundError(f"{prefix}.idx: the stream of --role-stream {name} is missing; binarise it as well")
    if not np.array_equal(stream.sizes, sizes):
        detail = f"{len(stream.sizes)} documents, not {len(sizes)}"
        if len(stream.sizes) == len(sizes):
            first = int(np.flatnonzero(stream.sizes != sizes)[0])
            detail = f"{stream.sizes[first]} ids for {sizes[first]} tokens in document {first + 1}"
        raise ValueError(f"{prefix}: the stream does not match the source: {detail}; preprocess the data again")
    return stream
