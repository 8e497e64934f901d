"""What processes do with a block of records: clean them, encode them."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from hat_fairseq.data.blocks import Members, digest, read_member
from hat_fairseq.data.files import json_text, parse_object, unicode_json
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.kinds.aligned import MisalignedError, dropped_words
from hat_fairseq.data.kinds.pretraining import units_to_pack
from hat_fairseq.data.kinds.windows import sample_negatives
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import RENAMED, json_line, record_from_json
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Prepared
from hat_fairseq.data.text import EmptyDocumentError, count_words


def clean_block(options: Options, target_optional: bool, to_learn: bool, block: tuple[list[str], bytes]) -> Members:
    """Returns the records of some lines as `text/SPLIT.jsonl` has them, and what later stages need of them.

    Args:
        target_optional: records may lack a target, as in a test split.
        to_learn: a BPE is learned from them, for which their words are counted.
        block: the argument of a `Block` of `blocks_of_lines`, the place of each line and the lines.
    Returns:
        the records, with their places and divided texts; ids, digests of the sources and names of all, without a
        digest if the record is dropped; the words with their counts; and figures.
    """
    report = SplitReport(kind := kind_of(options.kind))
    headers, stored, places, texts, words = [], [], [], [], Counter[str]()
    for where, line in zip(block[0], block[1].decode().split("\n"), strict=True):
        record = record_from_json(parse_object(line, where), where, kind, RENAMED)
        prepared = clean_record(record, kind, options, target_optional, report.treatments)
        headers.append((record.id, None if prepared is None else digest(record.texts()), record.name))
        if prepared is not None:
            report.count_record(prepared.record)
            stored.append(json_line(prepared.record) + "\n")
            places.append(where)
            target = prepared.target and prepared.target.to_json()
            texts.append([[each.to_json() for each in prepared.texts], target])
            if to_learn:
                words.update(" ".join(prepared.words()).split())
    return {
        "records": "".join(stored),
        "places": json_text(places, ensure_ascii=True),
        "texts": unicode_json(texts),
        "words": unicode_json(words),
        "headers": json_text(headers, ensure_ascii=True),
        "figures": report.to_merge(),
        "name": f"{headers[0][2]} to {headers[-1][2]}",
    }


def clean_record(
    record: Record, kind: Kind, options: Options, target_optional: bool, counts: Counter[str]
) -> Prepared | None:
    """Returns the record to store with its divided texts, or None if the options drop it.

    What was replaced or dropped is added to `counts`.
    """
    if kind.has_target and record.elements is not None and options.splitter != "given":
        raise ValueError(
            f"{record.name} is already divided into sentences or turns, and --splitter {options.splitter} is for "
            "running text; use --splitter given"
        )
    record_counts: Counter[str] = Counter()
    try:
        if kind.has_target and record.gold_value is None and not target_optional:
            raise EmptyDocumentError(f"{record.name} has no target")
        prepared = kind.prepare(record, options, record_counts, options.on_misaligned)
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
        counts.update(dropped_words(record.elements or (), record.gold_value or (), languages))
        return None
    counts.update(record_counts)
    return prepared


def prepared_records(archive: Path, kind: Kind) -> Iterator[Prepared]:
    """Yields what `clean_block` stored."""
    lines = read_member(archive, "records").decode().split("\n")[:-1]
    places, texts = (json.loads(read_member(archive, name)) for name in ("places", "texts"))
    for line, where, (divided, target) in zip(lines, places, texts, strict=True):
        record, texts_of_record = record_from_json(json.loads(line), where, kind), list(map(Divided.from_json, divided))
        yield Prepared(record, texts_of_record, target and Divided.from_json(target))


def encode_block(encoder: RowEncoder, split: str, negative_share: float, archive: Path) -> Members:
    """Returns the rows of stored records, by file; or the units to fill rows with, an empty line after a document."""
    report = SplitReport(kind := kind_of(encoder.settings.kind))
    own = {name: getattr(report, name) for name in ("totals", "round_trip", "needed")}
    encoder = replace(encoder, counts=report.treatments, **own)
    rows: list[Row] = []
    units: list[str] = []
    for prepared in prepared_records(archive, kind):
        report.totals.update(_words_of_texts(prepared, encoder.settings) if kind.is_text else ())
        if kind.fills_rows(encoder.settings):
            units += [*map(" ".join, units_to_pack(encoder, prepared)), ""]
            continue
        encoded = kind.encode(encoder, prepared)
        rows += sample_negatives(encoded, negative_share, encoder.counts) if negative_share < 1 else encoded
    files = lines_of_rows(rows, split, report)
    return files | {"units": "\n".join(units), "figures": report.to_merge()}


def _words_of_texts(prepared: Prepared, settings: Settings) -> Counter[str]:
    texts = (text if isinstance(text, str) else " ".join(text) for text in prepared.record.texts())
    target = () if prepared.target is None else (each.text for each in prepared.target.sentences)
    return Counter(
        source_words=sum(count_words(text, settings.source_language) for text in texts),
        target_words=count_words(" ".join(target), settings.target_language),
    )


def stored_units(archive: Path) -> Iterator[list[list[str]]]:
    """Yields the units of each document of a block, each as its tokens."""
    for document in read_member(archive, "units").decode().removesuffix("\n").split("\n\n"):
        if document:
            yield [unit.split(" ") for unit in document.split("\n")]


def files_of(archive: Path) -> dict[str, bytes]:
    """Returns the pieces of files that `encode_block` stored: the members that are in a folder."""
    with zipfile.ZipFile(archive) as members:
        return {name: members.read(name) for name in members.namelist() if "/" in name}


def lines_of_rows(rows: Iterable[Row], split: str, report: SplitReport) -> dict[str, str]:
    """Returns the content of each file about some rows, which are counted in the report."""
    files: dict[str, list[str]] = {}
    for row in rows:
        report.count_row(row)
        lines = {f"text/{split}.{stream}": " ".join(tokens) for stream, tokens in row.streams.items()}
        if not report.kind.packs:  # also in `bin`, to join rows with that alone; see `ids.read_ids`
            ids = f"{row.id}\t{row.number}\t{row.count}\t{row.segments}"
            lines |= {f"{folder}/{split}.ids": ids for folder in ("text", "bin")}
        for name, line in lines.items():
            files.setdefault(name, []).append(line + "\n")
    return {name: "".join(lines) for name, lines in files.items()}
