"""Long inference: workers compute batches of records with models of their own, and keep the result of each as one file.

A killed run goes on where it was: batches whose files are there are not computed again, unless a record, a model or an
option has changed. The result does not depend on the workers.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data.blocks import Block, Blocks, Members, blocks_of, digest, read_member
from ..data.outputs import locked
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.records_json import json_line
from ..package_files import BIN
from ..workers import Workers, progress
from ..workers.cluster import environment
from .loading import Loaded, checked, load, split_with

NAMED = 8  # documents of a batch that messages name


@dataclass(frozen=True)
class ModelFiles:
    """Where models are, and how they are loaded; see `loading.load`. `splitter`: see `loading.split_with`."""

    path: str  # a result of `hub.local_paths`
    data: Path | None
    device: str | None
    precision: str
    splitter: str | None
    state: str = field(init=False)  # when the command began

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", self.state_now())

    def pipeline(self, workers: Workers) -> TextPipeline:
        """Loads the pipeline of the models alone; ValueError for a mistake that is known without the models."""
        if workers.cluster is None:  # whose machines may have other devices
            checked(self.path, self.data, self.device, self.precision)
        pipeline = TextPipeline.load(self.data or Path(self.path.split(os.pathsep)[0], BIN))
        split_with(pipeline, self.splitter)
        return pipeline

    def load(self) -> Loaded:
        """Loads the models, in a worker; ValueError if they have changed since the command began."""
        loaded = load(self.path, self.data, self.device, self.precision)
        if self.state_now() != self.state:
            raise ValueError(f"{self.path} or its data changed while the command ran: run it again")
        split_with(loaded.pipeline, self.splitter)
        return loaded

    def state_now(self) -> str:
        """Returns a digest of the sizes and times of the files, and of the versions of packages."""
        roots = [*map(Path, self.path.split(os.pathsep)), *([self.data] if self.data else [])]
        paths = sorted(path for root in roots for path in (root, *root.glob("**/[!.]*")) if path.is_file())
        stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        return digest(environment(), stats)


class Job(ABC):
    """What a worker does with a batch of records: a dataclass, whose fields decide the result."""

    files: ModelFiles

    @abstractmethod
    def make_model(self, loaded: Loaded) -> Any:
        """Makes the object that `lines` uses, with a `pipeline`; a worker calls it for its first batch."""

    @abstractmethod
    def lines(self, records: Sequence[Record]) -> list[Any]:
        """Computes a JSON value for each record."""

    @cached_property
    def model(self) -> Any:
        return self.make_model(self.files.load())

    def __call__(self, records: Sequence[Record]) -> Members:
        """Returns the lines, and counts of what the pipeline has changed."""
        before = Counter(self.model.pipeline.counts)
        lines = self.lines(records)
        counts = self.model.pipeline.counts - before
        return {"lines": json.dumps(lines, ensure_ascii=False), "counts": json.dumps(counts)}


@dataclass
class Results:
    """Results of batches so far, and counts of what happened to the input."""

    job: Job
    blocks: Blocks
    finished: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def lines(self, records: Sequence[Record], size: int, what: str) -> Iterator[Any]:
        """Yields the line of each record, in order; `size`: records in a batch of a worker."""
        archives = self.blocks.map(self.job, self._blocks(records, size))
        for archive in progress(archives, what, -(-len(records) // size), "batches"):
            self.finished += 1
            self.counts.update(json.loads(read_member(archive, "counts")))
            yield from json.loads(read_member(archive, "lines"))

    def _blocks(self, records: Sequence[Record], size: int) -> Iterator[Block]:
        key = digest(self.job)
        for start in range(0, len(records), size):
            batch = list(records[start : start + size])
            names = ", ".join(repr(record.id) for record in batch[:NAMED])
            more = f" and {len(batch) - NAMED} more" if len(batch) > NAMED else ""
            yield Block(digest(key, *map(json_line, batch)), batch, f"the batch of documents {names}{more}")


@contextmanager
def results_of(job: Job, out: Path, workers: Workers) -> Iterator[Results]:
    """Yields the results of a job, in a folder beside `out` until the block ends without an error."""
    results = Results(job, blocks := blocks_of(out, workers))
    blocks.folder.mkdir(parents=True, exist_ok=True)
    refusal = f"another process is writing {out}; name another file"
    with workers, locked(blocks.folder, refusal), blocks.kept_for_next_run(after_refusal=True):
        try:
            yield results
        except BaseException:
            if results.finished:
                print(f"{out}: {results.finished} finished batches are kept for the next run", file=sys.stderr)
            raise
