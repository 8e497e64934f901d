"""A batch of CIFAR-10's python release (Krizhevsky 2009), which is a pickle, read without running what it names.

A pickle may name any function to be called. Here the three names that numpy's arrays need stand for inert objects of
this module, and every other name is an error.
"""

import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hat_fairseq.data.files import note_input

SIDE = 32


class Picture(NamedTuple):
    """(3, 32, 32) red, green and blue; the number of the class."""

    colours: NDArray[np.uint8]
    label: int


class _Array:
    """Stands for the function that numpy's pickled arrays are made with; keeps their bytes."""

    data = b""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state[-1], bytes):  # of an array
            _, shape, _, by_columns, self.data = state
            if by_columns or math.prod(shape) != len(self.data):
                raise ValueError("its pixels are not bytes in rows")


class _Names(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype"):
            return _Array
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no batch of CIFAR-10 needs")


def read_batch(path: Path) -> Iterator[Picture]:
    """Yield the pictures of a batch; ValueError if it is damaged or names anything but numpy's arrays."""
    note_input(path)
    try:
        with open(path, "rb") as file:
            batch = _Names(file, encoding="bytes").load()
        pixels = np.frombuffer(batch[b"data"].data, np.uint8).reshape(-1, 3, SIDE, SIDE)
        pictures = [Picture(*row) for row in zip(pixels, batch[b"labels"], strict=True)]
    except Exception as error:  # a damaged pickle may raise any
        raise ValueError(
            f"{path} is no batch of CIFAR-10's python release: {str(error) or type(error).__name__}"
        ) from error
    yield from pictures
