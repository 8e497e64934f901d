"""The stages of preprocessing between the reader and fairseq; each reads and writes files that a person can open."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from hat_fairseq.data.alignment import MisalignedError, words_of
from hat_fairseq.data.clean import EmptyDocumentError, prepare, sentences_for_bpe
from hat_fairseq.data.encode_answers import sample_negatives
from hat_fairseq.data.encode_examples import pack_documents, units_to_pack
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.parallel import ordered_map, progress
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Gold, Record
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.rows import Row, RowFiles
from hat_fairseq.data.word_tokenizer import count_words


@dataclass
class Share:
    """A shard: record i of a split, from 0, belongs to shard `i % of + 1`.

    So any reader can be divided, nothing is counted first, and shards differ by one record at most. The price: each
    shard reads the whole input, although it processes its own records only; and merging interleaves lines.

    Of each split: what the reader dropped; ids, and digests of the sources; lines of each record that is not dropped.
    """

    number: int
    of: int
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    digests: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)

    def read(self, reader: Reader, split: str, root: Path | None, options: Options) -> Iterator[Record]:
        """The records of this shard."""
        self.digests[split], self.dropped[split], self.lines[split] = [], Counter(), {}
        records = islice(reader.read(split, root, self.dropped[split]), options.limit)
        for record in islice(records, self.number - 1, None, self.of):
            self.digests[split].append((record.id, sha256(repr(record.source).encode()).hexdigest()[:16]))
            yield record


class Encoded(NamedTuple):
    """The rows of a record, or its units where rows are filled with several; and what was counted."""

    id: str
    rows: list[Row]
    units: list[list[str]]
    totals: Counter[str]
    counts: Counter[str]


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
        ValueError: a record that is refused.
    """
    path, kind, gold = records_path(text, split), kind_of(options.kind), Gold()
    prepared = ordered_map(partial(_prepare, options, split.startswith("test")), records, workers)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for record, record_counts in progress(prepared, path.name, expected):
            counts.update(record_counts)
            if record is not None:
                gold.add(record, kind.gold)
                file.write(json_line(record, kind) + "\n")
    return gold


def check_gold(split: str, gold: Gold, kind: Kind) -> None:
    """Raises ValueError for a split of which no record is left, or of which only some say what is right."""
    if not gold.records:
        raise ValueError(f"{split}.jsonl: every document was dropped (--on-empty drop, --on-misaligned drop)")
    if gold.known and gold.unknown:
        raise ValueError(
            f"{split}: {gold.known} has {kind.gold}, {gold.unknown} has none; give all documents of a split "
            f"{kind.gold}, or none"
        )


def learn_bpe(text: Path, split: str, options: Options, workers: int, total: int) -> LearnedBpe:
    """Learn joint codes from all texts of the prepared records, sources and targets."""
    words: Counter[str] = Counter()
    path = records_path(text, split)
    counted = ordered_map(partial(_words, options), read_records(path, options.kind, split), workers)
    for words_of_record in progress(counted, f"count words of {path.name}", total):
        words.update(words_of_record)
    return LearnedBpe.learn_from_words(words, options.num_codes)


def encode_split(
    pipeline: TextPipeline,
    split: str,
    options: Options,
    directory: Path,
    workers: int,
    total: int,
    share: Share | None = None,
) -> SplitReport:
    """Write the streams, the ids and the spans of a split: the same number of lines in every file."""
    kind = pipeline.kind
    report = SplitReport(kind)
    by_source = options.chunk_by == "source" and split.startswith("test")
    encoder = replace(pipeline.encoder(by_source), counts=Counter())
    records = read_records(records_path(directory / "text", split), kind, split)
    negatives = options.negative_windows if split == "train" else 1.0
    encoded = ordered_map(partial(_encode, encoder, options.pack, negatives), records, workers)
    counted = _counted(progress(encoded, f"{split}: BPE", total), report, share.lines[split] if share else {})
    if not options.pack:
        write_rows(chain.from_iterable(result.rows for result in counted), directory, split, report)
    elif not share:
        write_packed(pipeline, (result.units for result in counted), directory, split, report)
    else:  # a line is one unit; `hat merge` fills the rows
        units = (Row("", 0, 1, {"source": unit}) for result in counted for unit in result.units)
        write_rows(units, directory, split, SplitReport(kind))
    return report


def write_packed(
    pipeline: TextPipeline, units: Iterable[list[list[str]]], directory: Path, split: str, report: SplitReport
) -> None:
    """Write rows that are filled with the units of each record, and count them in the report."""
    packed = pack_documents(replace(pipeline.encoder(), counts=report.treatments), units)
    write_rows((Row("", 0, 1, {"source": tokens}) for tokens in packed), directory, split, report)


def write_rows(rows: Iterable[Row], directory: Path, split: str, report: SplitReport) -> None:
    with RowFiles(directory, split) as files:
        for row in rows:
            files.write(row, with_ids=not report.kind.packs)
            report.sentences += row.segments
            for side in report.lengths.keys() & row.streams.keys():
                report.lengths[side][len(row.streams[side]) + 1] += 1


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
        return None, Counter(documents_misaligned_dropped=1) + words_of(
            record, (options.source_language, options.target_language)
        )
    return prepared, counts


def _words(settings: Settings, record: Record) -> Counter[str]:
    sentences = sentences_for_bpe(record, kind_of(settings.kind), settings)
    return Counter(word for sentence in sentences for word in sentence.split())


def _encode(encoder: Encoder, pack: bool, negative_share: float, record: Record) -> Encoded:
    encoder.counts.clear()
    encoder.totals.clear()
    rows, units = ([], units_to_pack(encoder, record)) if pack else (encoder.kind.encode(encoder, record), [])
    if negative_share < 1:
        rows = sample_negatives(rows, negative_share, encoder.counts)
    source, target = encoder.settings.source_language, encoder.settings.target_language
    texts = ((text,) if isinstance(text, str) else text for _, text in record.texts())
    words: Counter[str] = Counter()
    if encoder.kind.is_text:
        words["source_words"] = sum(count_words(sentence, source) for text in texts for sentence in text)
        words["target_words"] = sum(count_words(sentence, target) for sentence in record.target or ())
    return Encoded(record.id, rows, units, words + encoder.totals, Counter(encoder.counts))


def _counted(encoded: Iterable[Encoded], report: SplitReport, lines: dict[str, int]) -> Iterator[Encoded]:
    for result in encoded:
        lines[result.id] = len(result.units or result.rows)
        report.documents += 1
        report.totals.update(result.totals)
        report.treatments.update(result.counts)
        yield result
