"""The stages of preprocessing between the reader and fairseq; each reads and writes files that a person can open."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TextIO

from hat_fairseq.data.alignment import MisalignedError, words_of
from hat_fairseq.data.clean import EmptyDocumentError, prepare, sentences_for_bpe
from hat_fairseq.data.encode_examples import pack_documents, units_to_pack
from hat_fairseq.data.ids import ids_line
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.parallel import ordered_map
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.progress import progress
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.round_trip import round_trip
from hat_fairseq.data.rows import Row
from hat_fairseq.data.token_spans import spans_line
from hat_fairseq.data.word_tokenizer import count_words


@dataclass
class Gold:
    """What is right in a split: how many records say it, and which labels and roles occur.

    Args:
        records: how many there are.
        known: the first record with something right; None if there is none.
        unknown: the first record without.
        first_with: each label, and the first record that has it.
        counts: how often each label occurs.
        roles: all roles.
    """

    records: int = 0
    known: str | None = None
    unknown: str | None = None
    first_with: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    roles: set[str] = field(default_factory=set)

    def add(self, record: Record, kind: Kind) -> None:
        self.roles.update(record.roles or ())
        if kind.gold is None or getattr(record, kind.gold) is None:
            self.unknown = self.unknown or record.name
            return
        self.known = self.known or record.name
        if record.answers is not None:
            self.counts["with an answer" if record.answers else "without answer"] += 1
        labels = record.labels or (() if record.label is None else (record.label,))
        self.counts.update(f"choice {label}" if record.choices else label for label in labels)
        for label in labels:
            self.first_with.setdefault(label, record.name)


def records_path(text: Path, split: str) -> Path:
    """Where the prepared records of a split are kept."""
    return text / f"{split}.jsonl"


def read_split(
    reader: Reader, split: str, root: Path | None, options: Options, counts: Counter[str], others: set[object]
) -> Iterator[Record]:
    """The reader's records, at most `options.limit`.

    Args:
        others: ids and hashes of the sources of earlier splits; those of this one are added. What occurs twice is
            counted as `ids_in_an_earlier_split` and `sources_in_an_earlier_split`.

    Raises:
        ValueError: an id that occurs twice, a split without records, or, unless the options say that this is meant,
            another number of records than the release has.
    """
    seen: set[str] = set()
    sources: set[int] = set()
    for record in islice(reader.read(split, root, counts), options.limit):
        if record.id in seen:
            raise ValueError(f"{reader.name}, {split}: {record.name} occurs twice")
        seen.add(record.id)
        sources.add(source := hash(record.source))
        counts["ids_in_an_earlier_split"] += record.id in others
        counts["sources_in_an_earlier_split"] += source in others
        yield record
    if not seen:
        raise ValueError(f"{reader.name}: the split {split} has no documents")
    others |= seen | sources
    expected = reader.release.get(split, (len(seen),))
    if options.limit is None and not options.partial and len(seen) not in expected:
        raise ValueError(
            f"{reader.name}: the split {split} has {len(seen):,} documents, a complete release "
            f"{' or '.join(f'{number:,}' for number in expected)}; complete it, or use what is there with --partial, "
            "or only the first N documents with --limit N"
        )


def prepare_split(
    records: Iterable[Record],
    split: str,
    options: Options,
    text: Path,
    counts: Counter[str],
    workers: int,
    expected: int | None = None,
) -> Gold:
    """Write the prepared records; what was replaced or dropped is added to `counts`.

    Args:
        expected: how many records there will be, if that is known.

    Raises:
        ValueError: a record that is refused, no record is left, or only some say what is right.
    """
    path, kind, gold = records_path(text, split), kind_of(options.kind), Gold()
    prepared = ordered_map(partial(_prepare, options, split.startswith("test")), records, workers)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for record, record_counts in progress(prepared, path.name, expected):
            counts.update(record_counts)
            if record is not None:
                gold.add(record, kind)
                gold.records += 1
                file.write(json_line(record, kind) + "\n")
    if not path.stat().st_size:
        raise ValueError(f"{path.name}: every document was dropped (--on-empty drop, --on-misaligned drop)")
    if gold.known and gold.unknown:
        raise ValueError(
            f"{split}: {gold.known} has {kind.gold}, {gold.unknown} has none; give all documents of a split "
            f"{kind.gold}, or none"
        )
    return gold


def class_labels(kind: Kind, splits: dict[str, Gold], known: list[str] | None) -> list[str]:
    """The labels in the order of their classes: those of the training part, sorted.

    Args:
        kind: one without fixed classes.
        splits: every split that there is.
        known: the labels to take where there is no training part.

    Raises:
        ValueError: a split has a label that is not among them; with the record.
    """
    where = "the training part" if "train" in splits else "the data of --vocabulary"
    classes = sorted(splits["train"].first_with) if "train" in splits else known or []
    for split, gold in splits.items():
        for label, name in gold.first_with.items():
            if label not in classes:
                raise ValueError(
                    f"{split}: {name} has the label {label!r}, which {where} does not have; "
                    f"it has {', '.join(map(repr, classes[:20])) or 'none'}{', ...' if len(classes) > 20 else ''}"
                )
    return classes


def learn_bpe(text: Path, split: str, options: Options, workers: int, total: int) -> LearnedBpe:
    """Learn joint codes from all texts of the prepared records, sources and targets."""
    words: Counter[str] = Counter()
    path = records_path(text, split)
    counted = ordered_map(partial(_words, options), read_records(path, options.kind, split), workers)
    for words_of_record in progress(counted, f"count words of {path.name}", total):
        words.update(words_of_record)
    return LearnedBpe.learn_from_words(words, options.num_codes)


def encode_split(
    pipeline: TextPipeline, split: str, options: Options, directory: Path, workers: int, total: int
) -> SplitReport:
    """Write the streams, the ids and the spans of a split: the same number of lines in every file."""
    kind = pipeline.kind
    report = SplitReport(kind)
    by_source = options.chunk_by == "source" and split.startswith("test")
    records = read_records(records_path(directory / "text", split), kind, split)
    encoded = ordered_map(partial(_encode, pipeline, by_source, options.pack), records, workers)
    counted = report.counted(progress(encoded, f"{split}: BPE", total))
    if options.pack:
        encoder = pipeline.encoder()
        encoder.counts = report.treatments
        packed = pack_documents(encoder, (result.units for result in counted))
        rows: Iterator[Row] = (Row("", 0, 1, {"source": tokens}) for tokens in packed)
    else:
        rows = chain.from_iterable(result.rows for result in counted)
    with RowFiles(directory, split) as files:
        for row in rows:
            report.add_row(row)
            files.write(row, with_ids=not kind.packs)
    if kind.has_target:
        report.round_trip = round_trip(pipeline, records_path(directory / "text", split))
    return report


class RowFiles(ExitStack):
    """The files of a split's rows, each opened when its first line comes: a stream that no row has, has no file."""

    def __init__(self, directory: Path, split: str) -> None:
        super().__init__()
        self.directory, self.split = directory, split
        self.files: dict[str, TextIO] = {}

    def write(self, row: Row, with_ids: bool) -> None:
        """Write a line of each stream of the row, its ids (also into `bin`, to join rows with that alone) and spans."""
        lines = {f"text/{self.split}.{stream}": " ".join(tokens) for stream, tokens in row.streams.items()}
        if with_ids:
            lines |= {f"{folder}/{self.split}.ids": ids_line(row) for folder in ("text", "bin")}
        if row.spans:
            lines[f"bin/{self.split}.spans"] = spans_line(row)
        if not self.files:
            self.files = {name: self._open(name) for name in lines}
        if self.files.keys() != lines.keys():
            raise ValueError(f"document {row.id!r} has not the same streams as those before it")
        for name, line in lines.items():
            self.files[name].write(line + "\n")

    def _open(self, name: str) -> TextIO:
        return self.enter_context(open(self.directory / name, "w", encoding="utf-8", newline="\n"))


class Encoded(NamedTuple):
    """The rows of a record, or its units where rows are filled with several; and what was counted."""

    rows: list[Row]
    units: list[list[str]]
    totals: Counter[str]
    counts: Counter[str]


def _prepare(options: Options, may_be_blind: bool, record: Record) -> tuple[Record | None, Counter[str]]:
    kind = kind_of(options.kind)
    kind.check(record)
    if kind.has_target and record.sentences is not None and options.splitter != "given":
        raise ValueError(
            f"{record.name} brings its own sentences or turns, and --splitter {options.splitter} is for running text; "
            "use --splitter given"
        )
    if kind.has_target and record.target is None and not may_be_blind:
        raise ValueError(f"{record.name} has no target")
    counts: Counter[str] = Counter()
    try:
        prepared = prepare(record, kind, options, counts, options.on_misaligned)
    except EmptyDocumentError as error:
        if options.on_empty == "error":
            raise EmptyDocumentError(f"{error}; remove it, or drop and count such: --on-empty drop") from error
        return None, Counter(documents_empty_dropped=1)
    except MisalignedError:
        if options.on_misaligned != "drop":
            raise
        return None, Counter(documents_misaligned_dropped=1) + words_of(record, options.languages)
    return prepared, counts


def _words(settings: Settings, record: Record) -> Counter[str]:
    sentences = sentences_for_bpe(record, kind_of(settings.kind), settings)
    return Counter(word for sentence in sentences for word in sentence.split())


def _encode(pipeline: TextPipeline, by_source: bool, pack: bool, record: Record) -> Encoded:
    pipeline.counts.clear()
    encoder = pipeline.encoder(by_source)
    rows, units = ([], units_to_pack(encoder, record)) if pack else (pipeline.kind.encode(encoder, record), [])
    source, target = pipeline.settings.languages
    texts = ((text,) if isinstance(text, str) else text for _, text in record.texts())
    words = Counter(
        source_words=sum(count_words(sentence, source) for text in texts for sentence in text),
        target_words=sum(count_words(sentence, target) for sentence in record.target or ()),
    )
    return Encoded(rows, units, words + encoder.totals, Counter(encoder.counts))
