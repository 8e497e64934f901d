"""Image of Long Range Arena: the class of a picture from its 1,024 pixels in grey (Krizhevsky 2009; Tay et al. 2021).

`--root` is the folder `cifar-10-batches-py` of `cifar-10-python.tar.gz` (https://www.cs.toronto.edu/~kriz/cifar.html):
`data_batch_1` to `data_batch_5` and `test_batch`, 10,000 pictures each. The release states no licence.

Its files are pickles, which may name any function to be called. They are read without running what they name: the three
names that numpy's arrays need stand for inert objects of this module, and every other name is an error.

A pixel is the luma 0.2989 R + 0.5870 G + 0.1140 B from 0 to 255, rounded as tensorflow's `rgb_to_grayscale` does. The
release has no validation part. Ours are the last 5,000 training pictures. The authors' are 5,000 others, because
tensorflow_datasets has shuffled the pictures.
"""

import math
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hat_fairseq.data.files import note_input
from hat_fairseq.data.kinds import ByteSequence
from release import release_file, release_folder

KIND = "byte_sequence"
RELEASE = {"train": (45000,), "valid": (5000,), "test": (10000,)}
BATCHES = {
    "train": [f"data_batch_{number}" for number in range(1, 6)],
    "valid": ["data_batch_5"],
    "test": ["test_batch"],
}
VALID = 5000  # of the last training batch
SIDE = 32
LUMA = np.array([0.2989, 0.5870, 0.1140])[:, None, None]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
CONTENT = "data_batch_1 to data_batch_5 and test_batch, as cifar-10-python.tar.gz has them"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[ByteSequence]:
    """Yield the pictures of a split; an id is the batch and the number in it."""
    folder = release_folder(root, CONTENT)
    for batch in BATCHES[split]:
        path = release_file(folder / batch, CONTENT)
        pictures = list(enumerate(_read_batch(path)))
        divided = batch == BATCHES["valid"][0]
        first = max(0, len(pictures) - VALID) if divided else len(pictures)
        for number, (colours, label) in pictures[first:] if split == "valid" else pictures[:first]:
            if not isinstance(label, int) or not 0 <= label < len(CLASSES):
                raise ValueError(f"{path}, picture {number}: the class is {label!r:.60}, not from 0 to 9")
            grey = np.minimum((LUMA * colours).sum(axis=0) * 255.5 / 255, 255).astype(int)
            pixels, origin = tuple(grey.ravel().tolist()), f"{path}, {number}"
            yield ByteSequence(f"{batch}-{number}", pixels=pixels, label=CLASSES[label], origin=origin)


def _read_batch(path: Path) -> list[tuple[NDArray[np.uint8], int]]:
    """Read the pictures, (3, 32, 32) red, green and blue, and their classes; ValueError for a damaged file."""
    note_input(path)
    try:
        with open(path, "rb") as file:
            batch = _Names(file, encoding="bytes").load()
        pixels = np.frombuffer(batch[b"data"].data, np.uint8).reshape(-1, 3, SIDE, SIDE)
        return list(zip(pixels, batch[b"labels"], strict=True))
    except Exception as error:  # a damaged pickle may raise any
        raise ValueError(
            f"{path} is no batch of CIFAR-10's python release: {str(error) or type(error).__name__}"
        ) from error


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
