"""Batches: refuses damaged binary data, works with numpy 2, and ends the threads that prepare batches."""

import atexit
import math
import os
import struct
import threading
import types
from collections.abc import Callable
from typing import Any

import fairseq.data.language_pair_dataset
import fairseq.data.token_block_dataset
import numpy as np
from fairseq.data.indexed_dataset import _code_to_dtype, infer_dataset_impl
from fairseq.data.iterators import BackgroundConsumer

LONGEST_WAIT = 30.0  # seconds, for a batch that never comes
_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of rows; then their sizes and places
_ROW = 4 + 8


def give_numpy_compat() -> None:
    """Gives two modules of fairseq a numpy with `np.compat.long`, which numpy 2 does not have; numpy itself stays."""
    if hasattr(np, "compat"):
        return
    for module in (fairseq.data.token_block_dataset, fairseq.data.language_pair_dataset):
        module.np = types.ModuleType("numpy")  # type: ignore[attr-defined]
        vars(module.np).update(vars(np), compat=types.SimpleNamespace(long=int))


def dataset_exists(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Returns whether there is a dataset; ValueError where only one of its two files is there."""
    _check_pair(path)
    return original(path, *args, **kwargs)


def make_dataset(original: Callable[..., Any], path: str, impl: str, *args: Any, **kwargs: Any) -> Any:
    """Opens `path`.idx and `path`.bin; ValueError if one is missing, has a wrong size, or an id is too large.

    In fairseq such data give other samples, or an error that names no file. All ids are read, a gigabyte of them in
    about 0.1 seconds if the file is in memory.
    """
    index, tokens = f"{path}.idx", f"{path}.bin"
    _check_pair(path)
    if os.path.exists(index) and infer_dataset_impl(path) in (None, "mmap"):  # None: the beginning is missing
        with open(index, "rb") as file:
            header = file.read(_HEADER.size)
        *_, code, rows = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        _check_size(index, _HEADER.size + rows * _ROW)
        number = int(np.fromfile(index, np.int32, rows, offset=_HEADER.size).sum(dtype=np.int64))
        _check_size(tokens, number * (width := np.dtype(_code_to_dtype[code]).itemsize))
        words = len(kwargs.get("dictionary") or ())
        # a negative id is a large one
        if number and words and (largest := int(np.memmap(tokens, f"u{width}", "r").max())) >= words:
            raise ValueError(
                f"{tokens} has the id {largest}, and the dictionary ends at {words - 1}: damaged, or of another "
                "dictionary; run hat preprocess again"
            )
    return original(path, impl, *args, **kwargs)


def _check_pair(path: str) -> None:
    if len(absent := [name for name in (f"{path}.idx", f"{path}.bin") if not os.path.exists(name)]) == 1:
        raise ValueError(f"{absent[0]} is missing; run hat preprocess again")


def _check_size(path: str, expected: int) -> None:
    if (size := os.path.getsize(path)) != expected:
        raise ValueError(f"{path} has {size} bytes instead of {expected}: damaged; run hat preprocess again")


@atexit.register
def end_threads() -> None:
    """Has Python wait for the batch that each thread of fairseq is preparing.

    In fairseq these are daemon threads: one inside of PyTorch at exit aborts the process with status 134.
    """
    threads = [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]
    for thread in threads:
        thread._max_len = 0  # its loop ends after the next batch
        with thread._queue.not_full:
            thread._queue.maxsize = math.inf  # a full queue would hold it
            thread._queue.not_full.notify_all()
    for thread in threads:
        thread.join(LONGEST_WAIT)
