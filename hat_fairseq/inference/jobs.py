"""Results of batches by workers, for the commands of inference.

A killed run resumes: batches whose files are there are not computed again, unless a record, a model or an
option has changed. The result does not depend on the workers.
"""

import argparse
import json
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..data.blocks import Block, Task, blocks_of
from ..data.dictionary import DICTIONARIES
from ..data.files import replaced_json, sha256_of, state_of
from ..data.outputs import locked
from ..data.pipeline import BPE_FILES, FILE_NAME, TextPipeline
from ..data.record import Record
from ..model_folder import MANIFEST, ModelFolder, is_model_folder
from ..versions import digest, versions
from ..weights.names import local_paths
from ..workers import Workers, progress
from .command import STDOUT, say_precision
from .loaded import Loaded
from .loading import bin_of, checked, load, pipeline_of, split_with
from .rows import check_readable, log_changes

NAMED = 8  # documents of a batch that messages name


@dataclass
class ModelFiles:
    """Where models are, and how they are loaded; see `loading.load`. `splitter`: see `loading.split_with`.

    `content` and `stats` are those of the files when `pipeline` read them. `content` is in `repr`, and so in the keys
    of results: what the files hold decides, not their times. So is the type of the device, which is unknown on a
    cluster unless it is named.
    """

    path: str  # a result of `local_paths`
    data: Path | None
    device: str | None = field(repr=False)
    precision: str
    splitter: str | None
    content: str | None = field(default=None, init=False)
    stats: str | None = field(default=None, init=False, repr=False)
    device_type: str | None = field(default=None, init=False)

    def pipeline(self, workers: Workers) -> TextPipeline:
        """Loads the pipeline of the models alone, and records what is in their files.

        ValueError for a mistake that is known without the models.
        """
        device = self.device
        if workers.cluster is None:  # whose machines may have other devices
            device, precision, _ = checked(self.path, self.data, self.device, self.precision)
            say_precision(self.precision, precision)
            self.precision = precision
        self.device_type = device and device.partition(":")[0]
        self.stats, self.content = self.stats_now(), self.content_now()
        folder = self.path.split(os.pathsep)[0]
        pipeline = TextPipeline.load(self.data) if self.data else pipeline_of(ModelFolder.open(folder))
        split_with(pipeline, self.splitter)
        return pipeline

    def load(self) -> Loaded:
        """Loads the models, in a worker; ValueError if they have changed since the command began.

        A file whose number, size and times are the same is not read again to compare it.
        """
        loaded = load(self.path, self.data, self.device, self.precision)
        if self.stats is not None and self.stats_now() != self.stats and self.content_now() != self.content:
            raise ValueError(f"{self.path} or its data changed while the command ran: run it again")
        split_with(loaded.pipeline, self.splitter)
        return loaded

    def content_now(self) -> str:
        """Returns a digest of names and contents of the files, wherever they are, and of the versions of packages."""
        return digest(versions(), [(path.name, sha256_of(path)) for path in self.files()])

    def stats_now(self) -> str:
        """Returns a digest of the inode numbers, sizes and times of the files, and of the versions of packages."""
        return digest(versions(), list(map(state_of, self.files())))

    def files(self) -> list[Path]:
        """Lists the files that decide the result: of a folder all, or its manifest, which loading compares with all."""
        places = [FILE_NAME, *chain(*BPE_FILES.values(), *DICTIONARIES.values())]
        folders = [] if self.data is None else [self.data]
        paths = []
        for path in map(Path, self.path.split(os.pathsep)):
            if is_model_folder(path):
                names = [MANIFEST] if (path / MANIFEST).is_file() else ["*.safetensors"]
                paths += [each for name in ("*.json", *names) for each in sorted(path.glob(name))]
                folders.append(ModelFolder.open(path).data)
            else:
                paths.append(path)
        paths += [folder / place for folder in folders for place in places]
        return [path for path in paths if path.is_file()]


def model_files(args: argparse.Namespace, path: str) -> ModelFiles:
    """Returns where the models are; without `--data` a checkpoint finds its dictionaries in preprocessed input."""
    path, data = local_paths(path), getattr(args, "data", None)
    if data is None and not is_model_folder(path.split(os.pathsep)[0]):
        data = args.input and bin_of(args.input)
    return ModelFiles(path, data, args.device, args.precision, getattr(args, "splitter", None))


@dataclass
class Job(ABC):
    """What a worker does with a batch of records; the fields decide the result."""

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

    def __call__(self, records: Sequence[Record]) -> Block:
        """Returns the lines, counts of what the pipeline has changed, and the limits that would truncate nothing."""
        before = Counter(self.model.pipeline.counts)
        lines = self.lines(records)
        counts = self.model.pipeline.counts - before
        return Block(records=replaced_json(lines), figures={"counts": counts, "needed": self.model.pipeline.needed})


@contextmanager
def results_of(
    job: Job, records: Sequence[Record], size: int, what: str, out: Path, workers: Workers
) -> Iterator[tuple[Iterator[Any], Counter[str]]]:
    """Yields the line of each record, in order, and counts of what happened to the input, which are logged at the end.

    Results are in a folder beside `out` until the block ends without an error; `size`: records in a batch of a worker.
    Those of the standard output are in a temporary folder.
    """
    counts, needed = Counter[str](), Counter[str]()

    def lines() -> Iterator[Any]:
        made = blocks.map(job, _batches(job, records, size))
        for block in progress(made, what, -(-len(records) // size), "batches"):
            counts.update(block.figures["counts"])
            needed.update(Counter(block.figures["needed"]) - needed)  # the greater ones
            yield from json.loads(block.records)
        check_readable(counts)

    refusal = f"another process is writing {out}; name another file"
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if out == STDOUT else out.parent
        blocks = blocks_of(Path(folder, out.name), stack.enter_context(workers))
        blocks.folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(blocks.folder, refusal))
        stack.enter_context(blocks.kept_for_next_run(after_refusal=True))
        try:
            yield lines(), counts
        except BaseException:
            if (number := len(blocks.finished())) and out != STDOUT:
                print(f"{out}: {number} finished batches are kept for the next run", file=sys.stderr)
            raise
    log_changes(counts, needed)


def _batches(job: Job, records: Sequence[Record], size: int) -> Iterator[Task]:
    key = digest(job)
    for start in range(0, len(records), size):
        batch = list(records[start : start + size])
        names = ", ".join(repr(record.id) for record in batch[:NAMED])
        more = f" and {len(batch) - NAMED} more" if len(batch) > NAMED else ""
        yield Task(digest(key, *batch), batch, f"the batch of documents {names}{more}")
