"""IMDB: reviews of films, good or bad (Maas et al. 2011).

`--root` is the folder `aclImdb` of `aclImdb_v1.tar.gz` (https://ai.stanford.edu/~amaas/data/sentiment/):
`{train,test}/{pos,neg}/NUMBER_STARS.txt`, 25,000 reviews each; `unsup` is not read. The release states no licence
and asks to be cited; the reviews are their authors'.

The release has no validation part. Ours are the training reviews with the numbers from 11,250 on, 1,250 of each label,
which leaves 22,500: a block and no sample, because reviews of one film have numbers near each other. Labels are `pos`
and `neg`; the stars, of which the label was made, are not read. `<br />` becomes a line break, and is counted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.kinds import LabelledText
from release import read_text, release_folder, release_texts

KIND = "classification"
DEFAULTS = {"splitter": "library"}
RELEASE = {"train": (22500,), "valid": (2500,), "test": (25000,)}
LABELS = ("neg", "pos")
FIRST_VALID = 11250
NAME = re.compile(r"(\d+)_(\d+)")
BREAK = re.compile(r"<br\s*/?>")
CONTENT = "train and test, in each of them pos and neg, as aclImdb has them"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[LabelledText]:
    """Yield the reviews of a split."""
    folder = release_folder(root, CONTENT) / ("test" if split == "test" else "train")
    for label in LABELS:
        for number, path in sorted((_number(path), path) for path in release_texts(folder / label, CONTENT, counts)):
            if split == "test" or (number >= FIRST_VALID) == (split == "valid"):
                yield _review(path, label, counts)


def _number(path: Path) -> int:
    match = NAME.fullmatch(path.stem)
    if match is None:
        raise ValueError(f"{path}: a review's name is NUMBER_STARS.txt; --root must be a folder with {CONTENT}")
    return int(match[1])


def _review(path: Path, label: str, counts: Counter[str]) -> LabelledText:
    text, breaks = BREAK.subn("\n", read_text(path))
    counts["line_break_tags_replaced"] += breaks
    return LabelledText(id=f"{label}/{path.stem}", text=text, label=label, origin=str(path))
