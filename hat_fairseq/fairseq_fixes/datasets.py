"""Refuses damaged binary data when it is loaded, and drops no sample in generation."""

import os
import struct
from collections.abc import Callable
from typing import Any

import fairseq.data.indexed_dataset
import fairseq.options
import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset, _code_to_dtype

from .replace import replaces

_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of rows; then their sizes and places
_ROW = 4 + 8


@replaces(fairseq.options, "parse_args_and_arch")
def parse_args_and_arch(original: Callable[..., Any], parser: Any, *rest: Any, **kwargs: Any) -> Any:
    """Generation drops no document; in fairseq a batch that does not fill up, and what is longer than the model."""
    parsed = original(parser, *rest, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if hasattr(args, "nbest"):  # fairseq-generate, fairseq-interactive
        args.required_batch_size_multiple = 1
        if args.skip_invalid_size_inputs_valid_test:
            raise ValueError(
                "--skip-invalid-size-inputs-valid-test would drop documents: remove it; what is too long is truncated "
                "with --task document_to_text --long-source truncate"
            )
    return parsed


@replaces(fairseq.data.indexed_dataset, "dataset_exists")
def dataset_exists(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Whether there is a dataset; ValueError where only one of its two files is there."""
    _check_pair(path)
    return original(path, *args, **kwargs)


@replaces(fairseq.data.indexed_dataset, "infer_dataset_impl")
def infer_dataset_impl(original: Callable[..., Any], path: str) -> Any:
    """The kind of a dataset; ValueError for an index that is of no kind, or alone."""
    _check_pair(path)
    kind = original(path)
    if kind is None and os.path.exists(f"{path}.idx"):
        raise ValueError(f"{path}.idx is damaged; run hat preprocess again")
    return kind


@replaces(fairseq.data.indexed_dataset, "make_dataset")
def make_dataset(original: Callable[..., Any], path: str, impl: str, *args: Any, **kwargs: Any) -> Any:
    """Opens `path`.idx and `path`.bin; ValueError if one has another size than it says, or an id too large."""
    if impl == "mmap" and MMapIndexedDataset.exists(path):
        with open(f"{path}.idx", "rb") as file:
            header = file.read(_HEADER.size)
        *_, code, rows = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        _check_size(f"{path}.idx", _HEADER.size + rows * _ROW)
        tokens = np.fromfile(f"{path}.idx", np.int32, rows, offset=_HEADER.size).sum(dtype=np.int64)
        _check_size(f"{path}.bin", int(tokens) * (width := np.dtype(_code_to_dtype[code]).itemsize))
        if tokens and (dictionary := kwargs.get("dictionary")) is not None:
            _check_ids(f"{path}.bin", width, len(dictionary))
    return original(path, impl, *args, **kwargs)


def _check_pair(path: str) -> None:
    absent = [f"{path}{ending}" for ending in (".idx", ".bin") if not os.path.exists(f"{path}{ending}")]
    if len(absent) == 1:
        raise ValueError(f"{absent[0]} is missing; run hat preprocess again")


def _check_size(path: str, expected: int) -> None:
    if (size := os.path.getsize(path)) != expected:
        raise ValueError(f"{path} has {size} bytes instead of {expected}: damaged; run hat preprocess again")


def _check_ids(path: str, width: int, words: int) -> None:
    """Reads all ids, a gigabyte of them in about 0.1 seconds if the file is in memory; a negative id is a large one."""
    if (largest := int(np.memmap(path, f"u{width}", "r").max())) >= words:
        raise ValueError(
            f"{path} has the id {largest}, and the dictionary ends at {words - 1}: damaged, or of another dictionary; "
            "run hat preprocess again"
        )
