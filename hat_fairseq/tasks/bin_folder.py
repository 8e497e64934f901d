"""What `hat preprocess` records beside the binary data: the kind of data, the text pipeline, and the ids of samples."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from fairseq import utils

from ..data.dictionary import check_known
from ..data.kinds import KINDS
from ..data.pipeline import FILE_NAME, TextPipeline
from ..data.rows import Chunk, read_ids


def load_pipeline(data: str | Path, kind: str) -> TextPipeline | None:
    """Returns the text pipeline of a `bin` directory; None for data that `hat preprocess` did not make.

    Raises:
        ValueError: the data is not of this kind, or its files cannot be read.
    """
    check_kind(data, kind)
    return TextPipeline.load(data) if (Path(data) / FILE_NAME).exists() else None


def check_data(data: str, kind: str) -> None:
    """Checks the first of the `bin` directories in fairseq's list before its dictionaries are read.

    Raises:
        FileNotFoundError: it is missing, or has no dictionary.
        ValueError: as `check_kind`.
    """
    first = Path(utils.split_paths(data)[0])
    check_kind(first, kind)
    if not any(first.glob("dict*.txt")):
        raise FileNotFoundError(
            f"{first} has no dictionary (dict*.txt): run `hat preprocess`, or `hat recipe preprocess NAME`, and give "
            "its `bin` directory"
        )


def check_kind(data: str | Path, kind: str) -> None:
    """Raises ValueError if the data is of another kind; `load_pipeline` says what else is wrong with it."""
    recorded = recorded_kind(data)
    if recorded not in (None, kind):
        raise ValueError(
            f"{data} holds data of the kind {recorded!r}, and this task reads {kind!r}: use the task "
            f"{KINDS[recorded].task if recorded in KINDS else '?'}, or other data"
        )


def recorded_kind(data: str | Path) -> str | None:
    """Returns the kind of the data in a `bin` directory; None if `hat preprocess` did not make it."""
    try:
        return str(json.loads((Path(data) / FILE_NAME).read_text(encoding="utf-8"))["settings"]["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_rows(rows: Any, what: str) -> None:
    """Raises ValueError for indexed rows of ids of which one is empty, or most tokens are not in the dictionary."""
    sizes = np.asarray(rows.sizes)
    if (sizes < 2).any():
        where = int(np.flatnonzero(sizes < 2)[0]) + 1
        raise ValueError(f"{what}: row {where} is empty; preprocess the data again")
    check_known(map(rows.__getitem__, range(len(rows))), what)


def load_ids(path: Path, num_rows: int) -> list[Chunk]:
    """Reads the ids table of a split; ValueError if it is missing, cannot be read, or is not about `num_rows` rows."""
    if not path.is_file():
        raise ValueError(f"{path} is missing: it says which rows belong to a sample; run hat preprocess again")
    chunks = read_ids(path)
    if len(chunks) != num_rows:
        raise ValueError(f"{path} has {len(chunks)} lines for {num_rows} rows: another subset?")
    return chunks
