"""What processes do with a block of records: clean them, count their words, encode them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from hat_fairseq.data.blocks import Members, digest, read_member
from hat_fairseq.data.bpe import NoBpe
from hat_fairseq.data.files import json_text, parse_object
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.kinds.aligned import MisalignedError, dropped_words
from hat_fairseq.data.kinds.pretraining import units_to_pack
from hat_fairseq.data.kinds.windows import sample_negatives
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, record_from_json
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.text import EmptyDocumentError, count_words


def clean_block(options: Options, may_be_blind: bool, block: tuple[list[str], bytes]) -> Members:
    """Returns the records of some lines as `text/SPLIT.jsonl` has them, their ids, digests and names, and counts.

    The digests are of the sources. `block`: the argument of a `Block` of `blocks_of_lines`, the place of each line and
    the lines; `may_be_blind`: records may lack a target, as in a test split.
    """
    report = SplitReport(kind := kind_of(options.kind))
    headers, stored, places = [], [], []
    for where, line in zip(block[0], block[1].decode().split("\n"), strict=True):
        record = record_from_json(parse_object(line, where), where, kind)
        headers.append((record.id, digest(record.source), record.name))
        cleaned = clean_record(record, kind, options, may_be_blind, report.treatments)
        if cleaned is not None:
            report.count_record(cleaned)
            stored.append(json_line(cleaned) + "\n")
            places.append(where)
    return {
        "records": "".join(stored),
        "places": json_text(places, ensure_ascii=True),
        "headers": json_text(headers, ensure_ascii=True),
        "figures": report.to_add(),
        "name": f"{headers[0][2]} to {headers[-1][2]}",
    }


def clean_record(
    record: Record, kind: Kind, options: Options, may_be_blind: bool, counts: Counter[str]
) -> Record | None:
    """Returns the record to store, or None if the options drop it; adds what was replaced or dropped to `counts`."""
    if kind.has_target and record.sentences is not None and options.splitter != "given":
        raise ValueError(
            f"{record.name} brings its own sentences or turns, and --splitter {options.splitter} is for running text; "
            "use --splitter given"
        )
    record_counts: Counter[str] = Counter()
    try:
        if kind.has_target and record.target is None and not may_be_blind:
            raise EmptyDocumentError(f"{record.name} has no target")
        cleaned: Record = kind.prepare(record, options, record_counts, options.on_misaligned)
    except EmptyDocumentError as error:
        if options.on_empty == "error":
            raise EmptyDocumentError(f"{error}; remove it, or drop and count such: --on-empty drop") from error
        counts["documents_empty_dropped"] += 1
        return None
    except MisalignedError:
        if options.on_misaligned != "drop":
            raise
        counts["documents_misaligned_dropped"] += 1
        languages = options.source_language, options.target_language
        counts.update(dropped_words(record.sentences or (), record.target or (), languages))
        return None
    counts.update(record_counts)
    return cleaned


def stored_records(archive: Path, kind: Kind) -> Iterator[Record]:
    """Yields the records that `clean_block` stored."""
    lines = read_member(archive, "records").decode().split("\n")[:-1]
    for line, where in zip(lines, json.loads(read_member(archive, "places")), strict=True):
        yield record_from_json(json.loads(line), where, kind)


class _WordCounter(NoBpe):
    """Counts the words that it encodes."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()

    def encode(self, text: str) -> list[str]:
        words = text.split()
        self.words.update(words)
        return words


def words_of_blocks(settings: Settings, archives: Sequence[Path]) -> Members:
    """Tells how often each word of the stored records goes into the BPE, in the order in which they occur first."""
    kind = kind_of(settings.kind)
    unlimited = replace(settings, max_source_tokens=None, max_target_tokens=None, max_segments=None, roles=False)
    encoder = RowEncoder(unlimited, counter := _WordCounter(), kind.policies)
    for record in chain.from_iterable(stored_records(archive, kind) for archive in archives):
        kind.encode(encoder, record if kind.has_target else record.without_gold())
    return {"words": json_text(counter.words, ensure_ascii=True)}


def encode_block(encoder: RowEncoder, split: str, negative_share: float, archive: Path) -> Members:
    """Returns the rows of stored records, by file; or the units to fill rows with, an empty line behind a document."""
    report = SplitReport(kind := kind_of(encoder.settings.kind))
    encoder = replace(encoder, counts=report.treatments, totals=report.totals, round_trip=report.round_trip)
    rows: list[Row] = []
    units: list[str] = []
    for record in stored_records(archive, kind):
        report.totals.update(_words_of_texts(record, encoder.settings) if kind.is_text else ())
        if kind.fills_rows(encoder.settings):
            units += [*map(" ".join, units_to_pack(encoder, record)), ""]
            continue
        encoded = kind.encode(encoder, record)
        rows += sample_negatives(encoded, negative_share, encoder.counts) if negative_share < 1 else encoded
    files = lines_of_rows(rows, split, report)
    return files | {"units": "\n".join(units), "figures": report.to_add()}


def _words_of_texts(record: Record, settings: Settings) -> Counter[str]:
    texts = ((text,) if isinstance(text, str) else text for text in record.texts())
    return Counter(
        source_words=sum(count_words(sentence, settings.source_language) for text in texts for sentence in text),
        target_words=sum(count_words(sentence, settings.target_language) for sentence in record.target or ()),
    )


def stored_units(archive: Path) -> Iterator[list[list[str]]]:
    """Yields the units of each document of a block, each as its tokens."""
    for document in read_member(archive, "units").decode().removesuffix("\n").split("\n\n"):
        if document:
            yield [unit.split(" ") for unit in document.split("\n")]


def lines_of_rows(rows: Iterable[Row], split: str, report: SplitReport) -> dict[str, str]:
    """Returns the content of each file about some rows, which are counted in the report."""
    files: dict[str, list[str]] = {}
    for row in rows:
        report.count_row(row)
        lines = {f"text/{split}.{stream}": " ".join(tokens) for stream, tokens in row.streams.items()}
        if not report.kind.packs:  # also in `bin`, to join rows with that alone; see `read_ids`
            ids = f"{row.id}\t{row.number}\t{row.count}\t{row.segments}"
            lines |= {f"{folder}/{split}.ids": ids for folder in ("text", "bin")}
        for name, line in lines.items():
            files.setdefault(name, []).append(line + "\n")
    if len(set(map(len, files.values()))) > 1:  # line i of all files is about row i
        raise ValueError(f"{split}: some rows have all of {', '.join(sorted(files))}, and others have not")
    return {name: "".join(lines) for name, lines in files.items()}
