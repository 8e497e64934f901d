"""The records of INPUT, which the commands of inference read, and those of them that have no text."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..data.columns import AS_NAMED
from ..data.formats import is_saved_dataset, opened
from ..data.kinds import Kind
from ..data.manifest import check_files
from ..data.options import Settings
from ..data.pipeline import TextPipeline
from ..data.readers import find_reader
from ..data.record import Record
from ..data.records_json import read_records, record_from_json, records_in
from ..data.text import EmptyDocumentError
from ..data.transcripts import MOST, transcript_in
from ..options import OptionError
from .command import SPLIT
from .loading import bin_of
from .rows import Line, log_changes


@dataclass(frozen=True)
class Input:
    """The records of INPUT in their order, and the ids of those without text."""

    records: list[Record]
    empty: set[str]

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


def read_input(args: argparse.Namespace, pipeline: TextPipeline, has_turns: bool = False) -> Input:
    """Reads the records of INPUT; `has_turns`: see `records_of`.

    ValueError if there are none, a splitter has no effect on them, or one has no text.
    """
    records = list(records_of(args.input, args.split, pipeline.kind, pipeline.settings, has_turns))
    if not records:
        raise ValueError(f"{args.input} is empty: nothing to {args.verb}")
    check_splitter(records, args.splitter)
    return Input(records, find_empty(records, pipeline, args.on_empty))


def check_splitter(records: Iterable[Record], splitter: str | None) -> None:
    """Raises ValueError for a splitter where no record has running text."""
    if splitter and not any(isinstance(text, str) for record in records for text in record.texts()):
        text = "{splitter} has no effect: all texts are divided already; remove it"
        raise OptionError(text, splitter=splitter)


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


def records_of(
    path: Path,
    split: str | None,
    kind: Kind,
    settings: Settings | None = None,
    has_turns: bool = False,
) -> Iterator[Record]:
    """Yields the records of a file, of a split of a folder, or of a split of preprocessed data; logs what is skipped.

    Args:
        split: None for `SPLIT`.
        settings: of the model. Its languages say which of two files is the source; it says whether plain text can be
            a transcript.
        has_turns: plain text with names is a transcript, whatever the settings say.
    Raises:
        ValueError: a split of a file, or one that a folder does not have.
    """
    stated, split = split, split or SPLIT
    if (folder := bin_of(path)) is not None:
        check_files(folder, split, contents=True)
        stored = folder.resolve().parent / "text" / f"{split}.jsonl"
        if not stored.is_file():
            raise ValueError(f"{stored} is missing: predictions are made from the records; is there a split {split}?")
        yield from read_records(stored, kind)
        return
    counts = Counter[str]()
    if path.is_dir() and not is_saved_dataset(path):
        languages = (None, None) if settings is None else (settings.source_language, settings.target_language)
        reader = find_reader(f"{path}/", kind.name, languages=languages, of_model=True)
        if split not in reader.splits:
            raise ValueError(f"{path} has no split {split}; it has {', '.join(reader.splits)}: choose one with --split")
        yield from reader.read(split, None, counts)
    elif stated is not None and path.exists():
        raise ValueError(f"--split {stated} has no effect: {path} is no folder with splits; remove it")
    else:
        yield from _records_of_file(path, kind, counts, settings, has_turns)
    log_changes(counts, {})


def _records_of_file(
    path: Path, kind: Kind, counts: Counter[str], settings: Settings | None, has_turns: bool
) -> Iterator[Record]:
    """Reads records; plain text and subtitles are one document.

    Plain text has turns where its lines begin with names, if the model was trained on turns or sentences. A model of
    running text reads all of it.
    """
    with opened(path, counts) as file:
        if file.is_text and not file.head.strip():
            return
        if not (file.is_text and kind.has_running_text and kind.record.one_of):
            rows = file.rows(AS_NAMED, keep_empty=True)
            yield from records_in(file, rows, kind, AS_NAMED, path.name.partition(".")[0])
            return
        reads_turns = (
            has_turns
            or settings is None
            or settings.splitter == "given"
            or settings.role_in_text
            or settings.role_labels
        )
        has_turns = "turns" in kind.record.one_of and bool(reads_turns)
        transcript = transcript_in(replace(file, most=MOST), running=True, has_turns=has_turns)
    print(transcript.describe(), file=sys.stderr)
    content = transcript.fields(kind.record.one_of)
    yield record_from_json({"id": transcript.name, **content}, str(path), kind)
