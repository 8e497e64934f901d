"""The stage of preprocessing that writes rows of tokens, made of prepared records."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hat_fairseq.data.encode_answers import sample_negatives
from hat_fairseq.data.encode_examples import pack_documents, units_to_pack
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options
from hat_fairseq.data.parallel import ordered_map, progress
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.rows import Row, RowFiles
from hat_fairseq.data.stages import Share, records_path
from hat_fairseq.data.word_tokenizer import count_words


class Encoded(NamedTuple):
    """The rows of a record, or its units where rows are filled with several; and what was counted."""

    id: str
    rows: list[Row]
    units: list[list[str]]
    totals: Counter[str]
    counts: Counter[str]


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
