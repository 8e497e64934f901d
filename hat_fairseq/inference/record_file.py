"""Records as a temporary file, for what reads files only."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..data.record import Record
from ..data.records_json import json_line


@contextmanager
def as_file(records: Iterable[Record]) -> Iterator[Path]:
    """Yields a temporary file of JSON lines with the records."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "records.jsonl")
        path.write_text("".join(f"{json_line(record)}\n" for record in records), encoding="utf-8")
        yield path
