"""Tiny releases in the containers of Long Range Arena's tasks; each function of `WRITERS` makes a `--root`."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from listops import Limits
from make_lra import write_listops, write_pathfinder
from preprocess.encoder_containers import articles, write_imdb

PER_BATCH = 6  # pictures


def write_lra_listops(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    write_listops(root, (30, 6, 6), Limits(8, 60), seed=1)


def write_lra_retrieval(root: Path) -> None:
    """Five columns without header; texts with an open quotation mark."""
    root.mkdir(parents=True, exist_ok=True)
    for split, first in {"train": 0, "eval": 8, "test": 12}.items():
        lines = []
        for number in range(first, first + 4):
            texts = [f'"{" ".join(articles()[n]["paragraphs"])[:300]}' for n in (number, number + 1)]
            lines.append(
                "\t".join((f"{number % 2}.0", f"P{number}", f"Q{number}", *(t.replace("\t", " ") for t in texts)))
            )
        (root / f"new_aan_pairs.{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


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
    root.mkdir(parents=True, exist_ok=True)
    for batch in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        names = [b"picture_%d.png" % number for number in range(PER_BATCH)]
        content = {b"batch_label": batch.encode(), b"labels": [0, 9, 3, 0, 9, 3], b"filenames": names}
        content[b"data"] = pictures(batch).reshape(PER_BATCH, -1)
        (root / batch).write_bytes(pickled(content))


def write_lra_pathfinder(root: Path) -> None:
    """20 images, the third of which is empty."""
    root.mkdir(parents=True, exist_ok=True)
    write_pathfinder(root, 20, seed=1, workers=1)
    (root / "curv_contour_length_14/imgs/0/sample_2.png").write_bytes(b"")


WRITERS = {
    "lra_listops": write_lra_listops,
    "lra_text": write_imdb,
    "lra_retrieval": write_lra_retrieval,
    "lra_image": write_lra_image,
    "lra_pathfinder": write_lra_pathfinder,
}
