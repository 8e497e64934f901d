"""Text of Long Range Arena: reviews of films, good or bad, as bytes (Maas et al. 2011; Tay et al. 2021).

`--root` is the folder `aclImdb` that `preprocess/imdb.py` reads, too; see there for its source and its licence. As in
the authors' pipeline, nothing is changed in a review, all 25,000 training reviews are for training, and **the test
reviews are also the validation part**: a checkpoint that is chosen by them is chosen on the test part.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.kinds import ByteSequence
from imdb import CONTENT, LABELS
from release import read_text, release_folder, release_texts

KIND = "byte_sequence"
SPLITS = ("train", "valid", "test")
RELEASE = dict.fromkeys(SPLITS, (25000,))


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[ByteSequence]:
    """Yield the reviews of a split."""
    folder = release_folder(root, CONTENT) / ("train" if split == "train" else "test")
    for label in LABELS:
        for path in release_texts(folder / label, CONTENT, counts):
            yield ByteSequence(f"{label}/{path.stem}", text=read_text(path), label=label, origin=str(path))
