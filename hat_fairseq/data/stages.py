"""What processes do with a block of records: clean them, encode them."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hat_fairseq.data.blocks import Block
from hat_fairseq.data.files import parse_object, unicode_json
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.kinds.aligned import MisalignedError, dropped_words
from hat_fairseq.data.kinds.pretraining import units_to_pack
from hat_fairseq.data.kinds.windows import sample_negatives
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import RENAMED, json_line, record_from_json
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Prepared
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.versions import digest


def clean_block(options: Options, split: str, to_learn: bool, part: tuple[list[str], bytes]) -> Block:
    """Returns the records of some lines as `text/SPLIT.jsonl` has them, and their divided texts for `encode_block`.

    Args:
        to_learn: a BPE is learned from them, for which their words are counted.
        part: the argument of a task of `tasks_of_lines`, the place of each line and the lines.
    Returns:
        a block with a header for each record: digests of its id and of its sources, the latter empty for one that is
        dropped, and its name.
    """
    report = SplitReport(kind := kind_of(options.kind))
    headers, lines, stored = [], [], []
    for where, line in zip(part[0], part[1].decode().split("\n"), strict=True):
        record = record_from_json(parse_object(line, where), where, kind, RENAMED)
        prepared = clean_record(record, kind, options, split, report.treatments)
        headers.append((digest(record.id), "" if prepared is None else digest(record.texts()), record.name))
        if prepared is not None:
            report.count_record(prepared, options)
            lines.append(json_line(prepared.record) + "\n")
            target = prepared.target and prepared.target.to_json()
            stored.append((where, [each.to_json() for each in prepared.texts], target))
            if to_learn:
                report.words.update(" ".join(prepared.words()).split())
    return Block(headers, unicode_json(stored), report.to_merge(), {f"text/{split}.jsonl": "".join(lines).encode()})


def clean_record(record: Record, kind: Kind, options: Options, split: str, counts: Counter[str]) -> Prepared | None:
    """Returns the record to store with its divided texts, or None if the options drop it.

    What was replaced or dropped is added to `counts`. Only records of a test split may lack a target.
    """
    if kind.has_target and record.elements is not None and options.splitter != "given":
        raise ValueError(
            f"{record.name} is already divided into sentences or turns, and --splitter {options.splitter} is for "
            "running text; use --splitter given"
        )
    record_counts: Counter[str] = Counter()
    try:
        if kind.has_target and record.gold_value is None and not split.startswith("test"):
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


def encode_block(encoder: RowEncoder, split: str, negative_share: float, to_build: bool, archive: Path) -> Block:
    """Returns the rows of what `clean_block` stored, by file; or the units to fill rows with, those of each document.

    `to_build`: a dictionary is built from them, for which their tokens are counted.
    """
    report = SplitReport(kind := kind_of(encoder.settings.kind), tokens=Counter() if to_build else None)
    own = {name: getattr(report, name) for name in ("totals", "round_trip", "needed")}
    encoder = replace(encoder, counts=report.treatments, **own)
    rows: list[Row] = []
    units: list[list[list[str]]] = []
    block = Block.open(archive)
    (lines,) = block.files.values()
    for line, (where, texts, target) in zip(lines.decode().split("\n")[:-1], json.loads(block.records), strict=True):
        record = record_from_json(json.loads(line), where, kind)
        prepared = Prepared(record, list(map(Divided.from_json, texts)), target and Divided.from_json(target))
        if kind.fills_rows(encoder.settings):
            units.append(units_to_pack(encoder, prepared))
            continue
        encoded = kind.encode(encoder, prepared)
        rows += sample_negatives(encoded, negative_share, encoder.counts) if negative_share < 1 else encoded
    files = lines_of_rows(rows, split, report)
    return Block(records=unicode_json(units), figures=report.to_merge(), files=files)


def lines_of_rows(rows: Iterable[Row], split: str, report: SplitReport) -> dict[str, bytes]:
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
    return {name: "".join(lines).encode() for name, lines in files.items()}
