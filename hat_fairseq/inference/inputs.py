"""Records to infer from: a file, a split of a folder, or a split of preprocessed data."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ..data.kinds import Kind
from ..data.manifest import check_files
from ..data.pipeline import FILE_NAME
from ..data.readers import find_reader
from ..data.record import Record
from ..data.records_json import is_table, read_records

Records = Callable[[], Iterable[Record]]


def bin_of(folder: Path) -> Path:
    """Returns the `bin` directory of a folder of `hat preprocess`, or of its `bin`."""
    return folder if (folder / FILE_NAME).is_file() else folder / "bin"


def records_of(path: Path, split: str, kind: Kind) -> Records:
    """Returns what yields the records of a file, of a split of a folder, or of a split of preprocessed data."""
    if (bin_of(path) / FILE_NAME).is_file():
        check_files(bin_of(path), split, contents=True)
        stored = bin_of(path).resolve().parent / "text" / f"{split}.jsonl"
        if not stored.is_file():
            raise ValueError(f"{stored} is missing: predictions are made from the records; is there a split {split}?")
        return partial(read_records, stored, kind)
    if path.is_dir() and not is_table(path):
        reader = find_reader(f"{path}/", kind.name)
        if split not in reader.splits:
            raise ValueError(f"{path} has no split {split}; it has {', '.join(reader.splits)}: choose one with --split")
        return partial(reader.read, split, None, Counter())
    return partial(read_records, path, kind)
