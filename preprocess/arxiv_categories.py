"""Papers of arXiv in eleven categories (He et al. 2019, "Long Document Classification From Local Word Glimpses").

`--root` is a folder with the eleven folders `cs.AI`, `cs.CE`, ... of the unpacked archives of
https://github.com/LiqunW/Long-document-dataset, in each a text file for each paper: 33,388 papers. (The release's table
has 6,025 for math.ST, with which the sum is 36,388; the papers that use the data have 33,388.) The release states no
licence; the papers are their authors'.

Neither the release nor the papers that use it publish a split. Ours: papers in the order of the SHA-256 of their
number on arXiv (the name of the file without its version), so that copies of a paper in two categories stay together;
the first 3,345 are `test`, as many as in Liu et al. 2022, the next 1,043 `valid`, the other 29,000 `train`. Of an
incomplete release the shares are the same. Labels are the names of the folders.
"""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from hat_fairseq.data.kinds import LabelledText
from release import read_text, release_folder, release_texts

KIND = "classification"
DEFAULTS = {"splitter": "punctuation"}
RELEASE = {"train": (29000,), "valid": (1043,), "test": (3345,)}
LABELS = ("cs.AI", "cs.CE", "cs.CV", "cs.DS", "cs.IT", "cs.NE", "cs.PL", "cs.SY", "math.AC", "math.GR", "math.ST")
CONTENT = f"the folders {', '.join(LABELS)}"
VERSION = re.compile(r"v\d+$")


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[LabelledText]:
    """Yield the papers of a split, by category and name."""
    folder = release_folder(root, CONTENT)
    papers = [path for label in LABELS for path in release_texts(folder / label, CONTENT, counts)]
    for path in sorted(_papers(papers, split)):
        name, label = f"{path.parent.name}/{path.stem}", path.parent.name
        yield LabelledText(name, text=read_text(path), label=label, origin=str(path))


def _papers(papers: list[Path], split: str) -> list[Path]:
    total = sum(number for (number,) in RELEASE.values())
    tests, valids = (round(len(papers) * RELEASE[name][0] / total) for name in ("test", "valid"))
    ordered = sorted(papers, key=lambda path: (_digest(path), path.parent.name))
    ends = [0, *(_end_of_copies(ordered, number) for number in (tests, tests + valids)), len(papers)]
    ranges = dict(zip(("test", "valid", "train"), pairwise(ends), strict=True))
    return ordered[slice(*ranges[split])]


def _end_of_copies(papers: list[Path], number: int) -> int:
    """Return the first number, from this one on, that does not part the copies of a paper."""
    while 0 < number < len(papers) and _digest(papers[number - 1]) == _digest(papers[number]):
        number += 1
    return number


def _digest(path: Path) -> str:
    return sha256(VERSION.sub("", path.stem).encode(errors="surrogateescape")).hexdigest()
