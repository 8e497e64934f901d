"""Small complete releases, each what a reader takes as `--root`: files among the fixtures, or written here."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from commands import REPOSITORY

from listops import Limits
from make_lra import write_listops, write_pathfinder

RELEASES = REPOSITORY / "tests/fixtures/releases"
GOLDEN = REPOSITORY / "tests/golden/preprocess"
OTHER_FOLDERS = {
    "arxiv": RELEASES / "cohan",
    "pubmed": RELEASES / "cohan",
    "lra_text": RELEASES / "imdb",
    "lra_retrieval": GOLDEN / "lra_retrieval/raw",
    "roberta_pretraining": RELEASES / "pretraining",
    "ernie_sparse_pretraining": RELEASES / "pretraining",
}
CATEGORIES = ("cs.AI", "cs.CE", "cs.CV", "cs.DS", "cs.IT", "cs.NE", "cs.PL", "cs.SY", "math.AC", "math.GR", "math.ST")
PER_BATCH = 6  # pictures


def write_release(name: str, root: Path) -> None:
    """Makes the folder `root`, or adds to it."""
    root.mkdir(parents=True, exist_ok=True)
    if name in WRITERS:
        WRITERS[name](root)
    else:
        shutil.copytree(OTHER_FOLDERS.get(name, RELEASES / name), root, dirs_exist_ok=True)


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8", newline="\n")


def write_c4(root: Path) -> None:
    """Two training files and one of validation; in each a short page and a long one."""
    for name in ("train.00000-of-00002", "train.00001-of-00002", "validation.00000-of-00001"):
        with gzip.open(root / f"c4-{name}.json.gz", "wt", encoding="utf-8") as file:
            for repeated in (1, 300):
                record = {
                    "text": "One cat sleeps on the mat. " * repeated,
                    "timestamp": "",
                    "url": "http://example.org/",
                }
                file.write(json.dumps(record) + "\n")


def write_arxiv_categories(root: Path) -> None:
    """44 papers, the first ones of two categories the same."""
    for place, label in enumerate(CATEGORIES):
        (root / label).mkdir()
        for paper in range(4):
            number = 0 if paper == 0 and place < 2 else 4 * place + paper
            text = f"{label} {number}\nWe show {number} facts about {label}."
            (root / label / f"15{number:02}.0{number:04}v{1 + place}.txt").write_text(text, encoding="utf-8")


def write_lra_listops(root: Path) -> None:
    write_listops(root, (30, 6, 6), Limits(8, 60), seed=1)


def write_lra_pathfinder(root: Path) -> None:
    """20 images, the third of which is empty."""
    write_pathfinder(root, 20, seed=1, workers=1)
    (root / "curv_contour_length_14/imgs/0/sample_2.png").write_bytes(b"")


class PicklerOfPython2(pickle._Pickler):  # type: ignore[name-defined]
    """Writes bytes as Python 2 wrote its strings, which is what the release holds."""

    def save_string(self, value: bytes) -> None:
        self.write(pickle.BINSTRING + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    dispatch = {**pickle._Pickler.dispatch, bytes: save_string}  # type: ignore[attr-defined]


def pictures(batch: str) -> np.ndarray[Any, Any]:
    """(6, 3, 32, 32) drawn colours."""
    return np.random.default_rng(list(batch.encode())).integers(0, 256, (PER_BATCH, 3, 32, 32), dtype=np.uint8)


def pickled(content: Any) -> bytes:
    file = io.BytesIO()
    PicklerOfPython2(file, protocol=2).dump(content)
    return file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def write_lra_image(root: Path) -> None:
    for batch in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        names = [b"picture_%d.png" % number for number in range(PER_BATCH)]
        content = {b"batch_label": batch.encode(), b"labels": [0, 9, 3, 0, 9, 3], b"filenames": names}
        content[b"data"] = pictures(batch).reshape(PER_BATCH, -1)
        (root / batch).write_bytes(pickled(content))


WRITERS = {
    "arxiv_categories": write_arxiv_categories,
    "c4": write_c4,
    "lra_image": write_lra_image,
    "lra_listops": write_lra_listops,
    "lra_pathfinder": write_lra_pathfinder,
}
