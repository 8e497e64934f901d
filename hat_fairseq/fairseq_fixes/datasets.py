"""Damaged binary data is named when it is loaded; fairseq fails later, or reads other documents."""

import os
import struct
from collections.abc import Callable
from typing import Any

import fairseq.data.indexed_dataset
import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset, _code_to_dtype

from .replace import replaces

_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of rows; then their sizes and places
_ROW = 4 + 8


@replaces(fairseq.data.indexed_dataset, "infer_dataset_impl")
def infer_dataset_impl(original: Callable[..., Any], path: str) -> Any:
    """The kind of a dataset; ValueError for an index that is of no kind."""
    kind = original(path)
    if kind is None and os.path.exists(f"{path}.idx"):
        raise ValueError(f"{path}.idx is damaged; preprocess the data again")
    return kind


@replaces(fairseq.data.indexed_dataset, "make_dataset")
def make_dataset(original: Callable[..., Any], path: str, impl: str, *args: Any, **kwargs: Any) -> Any:
    """Opens `path`.idx and `path`.bin; ValueError if one of them has another size than it says."""
    if impl == "mmap" and MMapIndexedDataset.exists(path):
        with open(f"{path}.idx", "rb") as file:
            header = file.read(_HEADER.size)
        *_, code, rows = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        _check_size(f"{path}.idx", _HEADER.size + rows * _ROW)
        tokens = np.fromfile(f"{path}.idx", np.int32, rows, offset=_HEADER.size).sum(dtype=np.int64)
        _check_size(f"{path}.bin", int(tokens) * np.dtype(_code_to_dtype[code]).itemsize)
    return original(path, impl, *args, **kwargs)


def _check_size(path: str, expected: int) -> None:
    if (size := os.path.getsize(path)) != expected:
        raise ValueError(f"{path} has {size} bytes instead of {expected}: damaged; preprocess the data again")
