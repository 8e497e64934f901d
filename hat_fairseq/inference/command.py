"""What the commands of inference share: flags, input, results of batches by workers, and output files.

A killed run goes on where it was: batches whose files are there are not computed again, unless a record, a model or an
option has changed. The result does not depend on the workers.
"""

import argparse
import json
import os
import shlex
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..cli import Parser
from ..data.blocks import Block, Members, blocks_of, digest, read_member
from ..data.columns import AS_NAMED, Columns, add_columns, columns_of
from ..data.dictionary import DICTIONARIES
from ..data.files import json_lines, json_text, sha256_of
from ..data.formats import TEXT, is_saved_dataset, opened
from ..data.kinds import Kind
from ..data.manifest import check_files
from ..data.options import SPLITTERS, Settings
from ..data.outputs import atomic_file, check_output, locked
from ..data.pipeline import BPE_FILES, FILE_NAME, TextPipeline
from ..data.readers import find_reader
from ..data.record import Record
from ..data.records_json import json_line, keys_of, read_records, record_from_json
from ..data.text import EmptyDocumentError
from ..data.transcripts import read_transcript
from ..kernels import AUTO, PRECISIONS
from ..model_folder import MANIFEST, ModelFolder, is_model_folder
from ..scoring import command as score_command
from ..scoring.bleu import make_bleu, settings_of
from ..scoring.command import checked as checked_score
from ..versions import versions
from ..weights.names import local_paths
from ..workers import Workers, add_workers, progress
from .loading import Loaded, checked, load, pipeline_of, split_with
from .rows import BATCH_SIZE, BATCH_TOKENS, Line, check_readable, log_changes

MODEL = "the checkpoint or folder of a model, demo, meeting, or USER/NAME on the Hugging Face Hub; "
MODEL += "several with : between them are an ensemble"
DATA = "the bin directory of the training data (default: {})"
OF_FOLDER = "the one in the folder of the model"
INPUT = "the records to read: JSON lines, a table, a text, a folder of splits, or a folder of hat preprocess; - is the "
INPUT += "standard input"
STDOUT = Path("-")  # as a value of --out: the standard output
SPLIT = "test"
NAMED = 8  # documents of a batch that messages name


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declares where and how precisely to compute, with how many workers."""
    add_workers(add_device(parser), "one for each GPU")


def add_device(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declares where and how precisely one process computes."""
    machine = parser.add_argument_group("machine and precision")
    machine.add_argument(
        "--device", metavar="NAME", help="compute on cpu, cuda or cuda:N (default: a GPU if there is one)"
    )
    group = machine.add_mutually_exclusive_group()
    help_text = "compute in fp32, fp16 (GPU), bf16 (GPU, CPUs that multiply it), int8 (CPUs with VNNI), or auto: bf16 "
    help_text += "where it is multiplied fast, else fp32 (default: %(default)s)"
    group.add_argument("--precision", choices=(*PRECISIONS, AUTO), default="fp32", help=help_text)
    for name in ("fp16", "bf16"):
        same: Any = {"dest": "precision", "action": "store_const", "const": name}
        group.add_argument(f"--{name}", help=f"the same as --precision {name}", **same)
    return machine


def say_precision(wanted: str, chosen: str) -> None:
    """Says which precision is used where the command was told to choose it."""
    if wanted == AUTO:
        print(f"precision: {chosen} (chosen by --precision {AUTO})", file=sys.stderr)


def workers_of(args: argparse.Namespace) -> Workers:
    """Returns the workers of the arguments; each has a GPU unless `--device` names another device."""
    return Workers(args.workers, args.cluster, with_models=True, on_gpus=args.device in (None, "cuda"))


def add_model_and_input(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Declares what all commands read: MODEL and INPUT; `default`: what is read without INPUT."""
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    text = INPUT if default is None else f"{INPUT} (default: {default})"
    parser.add_argument("input", metavar="INPUT", type=Path, nargs="?" if default else None, help=text)
    add_split(parser)
    parser.add_argument("--data", type=Path, metavar="BIN", help=DATA.format(f"{OF_FOLDER}, or INPUT for a checkpoint"))
    add_columns(parser)
    add_splitter(parser)


def add_splitter(
    parser: argparse.ArgumentParser, text: str = "split running text in this way (default: as in training)"
) -> None:
    """Declares how running text is split; see `loading.split_with`."""
    parser.add_argument("--splitter", choices=SPLITTERS[1:], help=text)


def add_batches(parser: argparse.ArgumentParser) -> None:
    """Declares the sizes of batches."""
    text = f"the greatest number of samples in a batch (default: {BATCH_SIZE}, with at most {BATCH_TOKENS} tokens "
    text += "if they are several)"
    group = parser.add_argument_group("batches")
    group.add_argument("--batch-size", type=int, metavar="N", help=text)
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help="the greatest number of tokens in a batch, with padding"
    )


def add_split(parser: argparse.ArgumentParser) -> None:
    """Declares the split of a folder; None for the usual one."""
    parser.add_argument("--split", metavar="SPLIT", help=f"read this split of a folder (default: {SPLIT})")


def add_out(parser: argparse.ArgumentParser, text: str) -> None:
    """Declares the file of output, and what becomes of input without text."""
    text += "; - is the standard output"
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")
    empty = "refuse an input with a document without text, or write an empty row for it (default: %(default)s)"
    parser.add_argument("--on-empty", choices=("error", "keep"), default="error", help=empty)


def add_score(parser: argparse.ArgumentParser, example: str) -> None:
    """Declares that the result is scored; see `Score`."""
    text = f"score the result against the gold of INPUT with these arguments of hat score, e.g. {example}; write the "
    text += "scores beside --out"
    parser.add_argument("--score", metavar="ARGS", help=text)


class Score:
    """The value of --score as arguments of `hat score`; a mistake in them ends the process.

    The scores are written to the file of their own `--json`, or beside `out`.

    Raises:
        ValueError: a record has no gold; a tokenizer is missing; the file of the scores exists.
    """

    def __init__(self, args: argparse.Namespace, records: Sequence[Record], pipeline: TextPipeline) -> None:
        gold = pipeline.kind.gold
        if args.out == STDOUT or gold is None:
            raise ValueError("--score needs a file of --out" if gold else "--score: these data have no gold: remove it")
        if blind := next((record for record in records if getattr(record, gold) is None), None):
            raise ValueError(f"{blind.name} has no {gold} to score with: leave out --score")
        self.words, self.out, folder = shlex.split(args.score), args.out, bin_of(args.input)
        self.records, self.language = records, pipeline.settings.target_language
        self.stored = folder and folder.resolve().parent / "text" / f"{args.split or SPLIT}.jsonl"
        with self.references() as references:
            if (parsed := self.parse(references)).json is None:
                file = args.out.with_suffix(".score.json")
                check_output(file, args.overwrite)
                self.words += ["--json", str(file), "--overwrite"]
            checked_score(parsed)
            if parsed.metric == "bleu":
                make_bleu(settings_of(parsed))

    @contextmanager
    def references(self) -> Iterator[Path]:
        """Yields the file of the records: that of `hat preprocess`, or a temporary one."""
        if self.stored:
            yield self.stored
        else:
            with as_file(self.records, self.language) as path:
                yield path

    def parse(self, references: Path) -> argparse.Namespace:
        parser = Parser(prog="hat score", allow_abbrev=False)
        score_command.add_arguments(parser)
        return parser.parse_args([*self.words, "--hypotheses", str(self.out), "--references", str(references)])

    def write(self) -> int:
        """Scores what was written; returns the exit status."""
        with self.references() as references:
            files = ["--hypotheses", str(self.out), "--references", str(references)]
            print(f"hat score {shlex.join([*self.words, *(files if self.stored else files[:2])])}", flush=True)
            return int(score_command.write_scores(checked_score(self.parse(references))))


@contextmanager
def as_file(records: Iterable[Record], language: str = "en") -> Iterator[Path]:
    """Yields a temporary file of records, which `recorded_language` finds the language for."""
    with TemporaryDirectory() as folder:
        path, pipeline = Path(folder, "text", "records.jsonl"), Path(folder, "bin", FILE_NAME)
        path.parent.mkdir()
        pipeline.parent.mkdir()
        pipeline.write_text(json_text({"settings": {"target_language": language}}), encoding="utf-8")
        path.write_text("".join(f"{json_line(record)}\n" for record in records), encoding="utf-8")
        yield path


@dataclass
class ModelFiles:
    """Where models are, and how they are loaded; see `loading.load`. `splitter`: see `loading.split_with`.

    `content` and `stats` are those of the files when `pipeline` read them. `content` is in `repr`, and so in the keys
    of results: what the files hold decides, not their times.
    """

    path: str  # a result of `local_paths`
    data: Path | None
    device: str | None
    precision: str
    splitter: str | None
    content: str | None = field(default=None, init=False)
    stats: str | None = field(default=None, init=False, repr=False)

    def pipeline(self, workers: Workers) -> TextPipeline:
        """Loads the pipeline of the models alone, and records what is in their files.

        ValueError for a mistake that is known without the models.
        """
        if workers.cluster is None:  # whose machines may have other devices
            _, precision, _ = checked(self.path, self.data, self.device, self.precision)
            say_precision(self.precision, precision)
            self.precision = precision
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
        """Returns a digest of what is in the files, and of the versions of packages."""
        return digest(versions(), [(str(path), sha256_of(path)) for path in self.files()])

    def stats_now(self) -> str:
        """Returns a digest of the inode numbers, sizes and times of the files, and of the versions of packages."""
        stats = [path.stat() for path in self.files()]
        signatures = [(each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in stats]
        return digest(versions(), signatures)

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

    def __call__(self, records: Sequence[Record]) -> Members:
        """Returns the lines, and counts of what the pipeline has changed."""
        before = Counter(self.model.pipeline.counts)
        lines = self.lines(records)
        counts = self.model.pipeline.counts - before
        return {"lines": json_text(lines), "counts": json_text(counts)}


@contextmanager
def results_of(
    job: Job, records: Sequence[Record], size: int, what: str, out: Path, workers: Workers
) -> Iterator[tuple[Iterator[Any], Counter[str]]]:
    """Yields the line of each record, in order, and counts of what happened to the input, which are logged at the end.

    Results are in a folder beside `out` until the block ends without an error; `size`: records in a batch of a worker.
    Those of the standard output are in a temporary folder.
    """
    counts = Counter[str]()

    def lines() -> Iterator[Any]:
        archives = blocks.map(job, _batches(job, records, size))
        for archive in progress(archives, what, -(-len(records) // size), "batches"):
            counts.update(json.loads(read_member(archive, "counts")))
            yield from json.loads(read_member(archive, "lines"))
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
    log_changes(counts)


def _batches(job: Job, records: Sequence[Record], size: int) -> Iterator[Block]:
    key = digest(job)
    for start in range(0, len(records), size):
        batch = list(records[start : start + size])
        names = ", ".join(repr(record.id) for record in batch[:NAMED])
        more = f" and {len(batch) - NAMED} more" if len(batch) > NAMED else ""
        yield Block(digest(key, *batch), batch, f"the batch of documents {names}{more}")


def model_files(args: argparse.Namespace, path: str) -> ModelFiles:
    """Returns where the models are; without `--data` a checkpoint finds its dictionaries in preprocessed input."""
    path, data = local_paths(path), getattr(args, "data", None)
    if data is None and not is_model_folder(path.split(os.pathsep)[0]):
        data = args.input and bin_of(args.input)
    return ModelFiles(path, data, args.device, args.precision, getattr(args, "splitter", None))


def bin_of(folder: Path) -> Path | None:
    """Returns the `bin` directory of a folder of `hat preprocess`, or of its `bin`; None for another folder."""
    return next((each for each in (folder, folder / "bin") if (each / FILE_NAME).is_file()), None)


def records_of(
    path: Path, split: str | None, kind: Kind, columns: Columns = AS_NAMED, settings: Settings | None = None
) -> Iterator[Record]:
    """Yields the records of a file, of a split of a folder, or of a split of preprocessed data; logs what is skipped.

    Args:
        split: None for `SPLIT`.
        settings: of the model, whose languages say which of two files is the source.
    Raises:
        ValueError: a split of a file, or one that a folder does not have.
    """
    stated, split = split, split or SPLIT
    if (folder := bin_of(path)) is not None:
        columns.check_for(f"{path}, which hat preprocess wrote")
        check_files(folder, split, contents=True)
        stored = folder.resolve().parent / "text" / f"{split}.jsonl"
        if not stored.is_file():
            raise ValueError(f"{stored} is missing: predictions are made from the records; is there a split {split}?")
        yield from read_records(stored, kind)
        return
    counts = Counter[str]()
    if path.is_dir() and not is_saved_dataset(path):
        languages = (None, None) if settings is None else (settings.source_language, settings.target_language)
        reader = find_reader(f"{path}/", kind.name, columns, languages, of_model=True)
        if split not in reader.splits:
            raise ValueError(f"{path} has no split {split}; it has {', '.join(reader.splits)}: choose one with --split")
        yield from reader.read(split, None, counts)
    elif stated is not None:
        raise ValueError(f"--split {stated} has no effect: {path} is no folder with splits; remove it")
    else:
        yield from _records_of_file(path, kind, columns, counts)
    log_changes(counts)


def _records_of_file(path: Path, kind: Kind, columns: Columns, counts: Counter[str]) -> Iterable[Record]:
    """Reads records; plain text and subtitles are one document, with turns where its lines begin with names."""
    with opened(path, keys_of(kind, columns)) as file:
        is_document = file.format == TEXT and kind.has_running_text and kind.record.one_of
        if file.format == TEXT and not file.head.strip():
            return []
    if not is_document:
        return read_records(path, kind, columns, counts)
    columns.check_for(f"{path}, which is plain text")
    transcript = read_transcript(path, running=True)
    print(transcript.describe(), file=sys.stderr)
    content = transcript.fields(kind.record.one_of)
    return [record_from_json({"id": transcript.name, **content}, str(path), kind)]


@dataclass(frozen=True)
class Input:
    """The records of INPUT in their order, the ids of those without text, and how their results are scored."""

    records: list[Record]
    empty: set[str]
    score: Score | None

    @property
    def with_text(self) -> list[Record]:
        """Returns the records that a model reads."""
        return [record for record in self.records if record.id not in self.empty]

    def in_order(self, lines: Iterator[Line], **fields: Any) -> list[Line]:
        """Returns the line of each record: the next of `lines`, or, for one without text, one with the `fields`."""
        empty = {
            record.id: {"id": record.id, **fields, **({} if record.meta is None else {"meta": record.meta})}
            for record in self.records
            if record.id in self.empty
        }
        return [empty[record.id] if record.id in empty else next(lines) for record in self.records]


def read_input(args: argparse.Namespace, pipeline: TextPipeline) -> Input:
    """Reads the records of INPUT.

    ValueError if there are none, a splitter has no effect on them, they cannot be scored, or one has no text.
    """
    columns = columns_of(args.columns, args.number_ids)
    records = list(records_of(args.input, args.split, pipeline.kind, columns, pipeline.settings))
    if not records:
        raise ValueError(f"{args.input} is empty: nothing to {args.verb}")
    check_splitter(records, args.splitter)
    score = Score(args, records, pipeline) if getattr(args, "score", None) else None
    return Input(records, find_empty(records, pipeline, args.on_empty), score)


def check_splitter(records: Iterable[Record], splitter: str | None) -> None:
    """Raises ValueError for a splitter where no record has running text."""
    if splitter and not any(isinstance(text, str) for record in records for text in record.texts()):
        raise ValueError(f"--splitter {splitter} has no effect: all texts are divided already; remove it")


def find_empty(records: Sequence[Record], pipeline: TextPipeline, on_empty: str) -> set[str]:
    """Finds the ids of the records without text; ValueError for such, unless `on_empty` is `keep`."""
    empty = set()
    for record in records:
        try:
            pipeline.kind.check(record)
            pipeline.kind.check_texts(record)
        except EmptyDocumentError as error:
            if on_empty == "error":
                raise ValueError(f"{error}; remove it, or write an empty row for such: --on-empty keep") from None
            empty.add(record.id)
    if empty:
        print(f"{len(empty)} of {len(records)} documents have no text", file=sys.stderr)
    return empty


def check_lines(out: Path, overwrite: bool, inputs: Iterable[str | Path | None]) -> None:
    """Refuses to replace a file of lines, as `check_output`; and --overwrite where no file is written."""
    if out != STDOUT:
        check_output(out, overwrite, inputs)
    elif overwrite:
        raise ValueError("--overwrite has no effect with --out -: remove it")


def say(out: Path, text: str) -> None:
    """Prints what was written to `out`: to stderr where the lines themselves are the standard output."""
    if out == STDOUT:
        print(f"wrote {text}", file=sys.stderr)
    else:
        print(f"{out}: {text}")


def write_lines(out: Path, lines: Iterable[Any]) -> None:
    """Writes one JSON object a line; the file appears when it is complete."""
    with nullcontext(sys.stdout.buffer) if out == STDOUT else atomic_file(out) as file:
        file.writelines(json_lines(lines))
