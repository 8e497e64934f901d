"""What `hat preprocess` records beside the binary data: the text pipeline, with the kind of the data."""

from pathlib import Path
from typing import Any

import numpy as np
from fairseq import utils

from ..data.dictionary import check_known
from ..data.pipeline import FILE_NAME, TextPipeline


def load_pipeline(data: str, task: str) -> TextPipeline | None:
    """Returns the text pipeline of the first `bin` directory of fairseq's list; None for data of fairseq-preprocess.

    Raises:
        FileNotFoundError: the directory is missing, or has no dictionary.
        ValueError: the data are for another task, or the files of the pipeline cannot be read.
    """
    folder = Path(utils.split_paths(data)[0])
    if not [*folder.glob("dict*.txt"), *folder.glob("*/dict.txt")]:
        raise FileNotFoundError(
            f"{folder} has no dictionary (dict*.txt): run `hat preprocess`, or `hat recipe preprocess NAME`, and give "
            "its `bin` directory"
        )
    if not (folder / FILE_NAME).exists():
        return None
    pipeline = TextPipeline.load(folder)
    if pipeline.kind.task != task:
        raise ValueError(
            f"{folder} holds data of the kind {pipeline.kind.name!r}, which the task {task} does not read: use the "
            f"task {pipeline.kind.task}, or other data"
        )
    return pipeline


def check_rows(rows: Any, what: str) -> None:
    """Raises ValueError for indexed rows of ids of which one is empty, or most tokens are not in the dictionary."""
    empty = np.flatnonzero(np.asarray(rows.sizes) < 2)
    if len(empty):
        raise ValueError(f"{what}: row {empty[0] + 1} is empty; preprocess the data again")
    check_known(map(rows.__getitem__, range(len(rows))), what)
