"""The manifest of a preprocessing run: counts of the input, of the output, and of everything dropped or replaced."""

import math
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from os import stat_result
from pathlib import Path
from typing import Any

from hat_fairseq.data import round_trip
from hat_fairseq.data.checksums import MANIFEST, Checksums, checksums_of
from hat_fairseq.data.files import json_text, read_json
from hat_fairseq.data.kinds import DocumentQuestionKind, Kind, kind_of
from hat_fairseq.data.long_input import all_truncated
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import shown_label
from hat_fairseq.data.rows import Row
from hat_fairseq.data.sentences import Prepared
from hat_fairseq.data.text import count_words
from hat_fairseq.printed import aligned
from hat_fairseq.versions import versions

FILE_NAME = MANIFEST
HASHED = 1_000_000_000  # bytes; of a file up to this size the hash is always compared, in less than a second
MAX_INPUTS = 1000  # files that are listed one by one
LABEL_ROWS = 40  # of the table; the manifest has all
# Means for each document, as in Tables 1 and 2 of Rohde et al. 2021: words before any tokenisation, BPE tokens before
# anything is cut.
PAPER_ROWS = ("source_words", "source_tokens", "target_words", "target_tokens")


@dataclass
class SplitReport:
    """Figures of one split, or of a block of it."""

    kind: Kind  # of its records
    documents: int = 0  # how many records there are
    sentences: int = 0  # how many markers there are in all lines
    # how many lines of each side have how many tokens; markers, separators and the final `</s>` count
    lengths: dict[str, Counter[int]] = field(default_factory=lambda: {"source": Counter(), "target": Counter()})
    totals: Counter[str] = field(default_factory=Counter)  # the sums of `PAPER_ROWS`
    round_trip: Counter[str] = field(default_factory=Counter)  # sums of `round_trip.compare`
    labels: Counter[str] = field(default_factory=Counter)  # how often each label occurs
    first_with: dict[str, str] = field(default_factory=dict)  # the first record with each label
    role_counts: Counter[str] = field(default_factory=Counter)  # how many sentences each role has
    words: Counter[str] = field(default_factory=Counter)  # how often each word goes into the BPE, if one is learned
    tokens: Counter[str] | None = None  # how often each occurs, if the dictionary is built from them
    treatments: Counter[str] = field(default_factory=Counter)  # everything replaced, cut or dropped
    needed: Counter[str] = field(default_factory=Counter)  # limits that would do, see `RowEncoder`
    with_gold: str | None = None  # the first record with a gold target or label; None if there is none
    without_gold: str | None = None

    def count_record(self, prepared: Prepared, settings: Settings) -> None:
        """Counts a record, its words, its gold labels and its roles."""
        record, target = prepared.record, prepared.target
        self.documents += 1
        if self.kind.is_text:
            for text in record.texts():
                words = text if isinstance(text, str) else " ".join(text)
                self.totals["source_words"] += count_words(words, settings.source_language)
            words = " ".join(each.text for each in target.sentences) if target else ""
            self.totals["target_words"] += count_words(words, settings.target_language)
        if self.kind.has_target:
            self.role_counts.update(getattr(record, "roles", None) or ())
        if record.gold_value is None:
            self.without_gold = self.without_gold or record.name
        else:
            self.with_gold = self.with_gold or record.name
            self.labels.update(labels := self.kind.gold_labels(record))
            self.first_with = dict.fromkeys(labels, record.name) | self.first_with

    def count_row(self, row: Row) -> None:
        """Counts a row: its markers, and its tokens with `</s>`."""
        self.sentences += row.segments
        for side in self.lengths.keys() & row.streams.keys():
            self.lengths[side][len(row.streams[side]) + 1] += 1
            if self.tokens is not None:
                self.tokens.update(row.streams[side])

    def add(self, later: Mapping[str, Any]) -> None:
        """Adds what `to_merge` of a later block has returned."""
        self.documents += later["documents"]
        self.sentences += later["sentences"]
        self.with_gold = self.with_gold or later["with_gold"]
        self.without_gold = self.without_gold or later["without_gold"]
        self.first_with = later["first_with"] | self.first_with
        for name in ("totals", "round_trip", "labels", "role_counts", "words", "treatments"):
            getattr(self, name).update(later[name])
        if self.tokens is not None:
            self.tokens.update(later["tokens"] or ())
        self.needed |= Counter(later["needed"])  # the greater ones
        for side, lengths in later["lengths"].items():
            self.lengths[side].update({int(length): lines for length, lines in lengths.items()})

    def to_merge(self) -> dict[str, Any]:
        """Returns all figures as values of JSON."""
        return {**vars(self), "kind": None}

    def check_gold(self, split: str) -> None:
        """Raises ValueError for a split without records, or in which only some records have targets or labels."""
        name = self.kind.gold
        if not self.documents:
            raise ValueError(f"{split}.jsonl: every document was dropped (--on-empty drop, --on-misaligned drop)")
        if self.with_gold and self.without_gold:
            raise ValueError(
                f"{split}: {self.with_gold} has {name}, {self.without_gold} has none; give all documents of a split "
                f"{name}, or none"
            )

    def for_manifest(self) -> dict[str, Any]:
        """Returns the figures of the manifest."""
        sides = ("source", "target") if self.kind.has_target else ("source",)
        rows = [row for row in PAPER_ROWS if row.startswith(sides) and (self.kind.is_text or "words" not in row)]
        lines = self.lengths["source"].total()
        record: dict[str, Any] = {"documents": self.documents, "lines": lines, "sentences": self.sentences}
        record |= {f"{side}_tokens": _summary(self.lengths[side]) for side in sides}
        record["per_document"] = {row: round(self.totals[row] / max(1, self.documents), 1) for row in rows}
        record |= {} if self.kind.has_target else {"labels": dict(sorted(self.labels.items()))}
        record |= {"round_trip": round_trip.summary(self.round_trip)} if self.round_trip else {}
        record |= {"treatments": dict(sorted((+self.treatments).items()))}
        if all_truncated(lines, self.treatments["rows_over_limit"], self.needed):
            record["needed"] = dict(sorted(self.needed.items()))
        return record


def _summary(lengths: Counter[int]) -> dict[str, float]:
    """Sum, mean and maximum."""
    total, lines = sum(length * number for length, number in lengths.items()), lengths.total()
    return {"total": total, "mean": round(total / lines, 1) if lines else 0.0, "max": max(lengths, default=0)}


def write_manifest(
    directory: Path, reader: Reader, options: Options, reports: Mapping[str, SplitReport], inputs: Iterable[Path]
) -> dict[str, Any]:
    """Writes `manifest.json` into `directory` with the sizes and hashes of its files; returns it."""
    manifest = {
        "reader": reader.name,
        "command": shlex.join(sys.argv),
        "date": _date(datetime.now().timestamp()),
        "inputs": describe_inputs(inputs),
        "options": asdict(options),
        "versions": versions() | ({"reader": reader.sources} if reader.sources else {}),
        "splits": {split: report.for_manifest() for split, report in reports.items()},
        "paper": dict(reader.paper),
        **checksums_of(directory),
    }
    path = directory / FILE_NAME
    path.write_text(json_text(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def describe_inputs(inputs: Iterable[Path]) -> list[dict[str, Any]]:
    """Returns path, size in bytes and time of change of each file.

    Of more than `MAX_INPUTS` files a row for each folder.
    """
    paths, stats = sorted(inputs), dict[Path, list[stat_result]]()
    for path in paths:
        stats.setdefault(path.parent if len(paths) > MAX_INPUTS else path, []).append(path.stat())
    return [
        {
            "path": str(path),
            **({"files": len(rows)} if len(paths) > MAX_INPUTS else {}),
            "size": sum(row.st_size for row in rows),
            "changed": _date(max(row.st_mtime for row in rows)),
        }
        for path, rows in stats.items()
    ]


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def check_files(data: str | Path, split: str, contents: bool = False) -> None:
    """Compares the files of a split, and the dictionaries, in `data` (a `bin`) with the manifest beside it, if any.

    ValueError if one is missing or has changed; `contents`: files above `HASHED` bytes are also compared by hash.
    """
    root = Path(data).resolve()
    try:
        checksums = Checksums.read(root.parent)
    except (OSError, ValueError, KeyError, TypeError):  # none, or of an earlier version
        return
    names = [
        name
        for name in checksums.sizes
        if name.startswith(f"{root.name}/") and Path(name).name.startswith((f"{split}.", "dict."))
    ]
    for name, problem in checksums.problems(root.parent, names, math.inf if contents else HASHED):
        raise ValueError(f"{Path(data, Path(name).relative_to(root.name))} {problem}; run hat preprocess again")


def truncation(directory: str | Path, split: str) -> str | None:
    """Says that every row of a split of a folder of `hat preprocess` was truncated; None if that is not so, or unknown.

    See `long_input.all_truncated`.
    """
    try:
        return truncated(read_json(Path(directory) / FILE_NAME)["splits"][split])
    except (OSError, ValueError, KeyError, TypeError):  # no manifest, or one of an earlier version
        return None


def truncated(figures: Mapping[str, Any]) -> str | None:
    """Says that every row of a split was truncated, by its figures in the manifest; else None."""
    if not (needed := figures.get("needed")):
        return None
    return all_truncated(figures["lines"], figures["treatments"]["rows_over_limit"], needed)


def answers_lost(split: Mapping[str, Any]) -> str:
    """Returns how many questions lost their answer, by the reader or by the limits of windows, and their share."""
    by_reader = split["treatments"].get("answers_lost_by_reader", 0)
    total = split["labels"].get("with an answer", 0) + by_reader
    lost = by_reader + split["treatments"].get("examples_left_without_answer", 0)
    return f"{lost:,} of {total:,} ({100 * lost / max(1, total):.1f} %)"


def table(manifest: Mapping[str, Any]) -> str:
    """Returns the manifest's figures as a short table: one column for each split, and one for what the paper prints."""
    rows = [["", *manifest["splits"], "paper" if manifest["paper"] else ""]]
    for name, figures, in_paper in _rows(manifest):
        rows.append([name, *(each if isinstance(each, str) else f"{each:,}" for each in figures), in_paper])
    return "\n".join(aligned(rows, str.rjust))


def _rows(manifest: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], str]]:
    """Name, figures of the splits and figure of the paper, for each row of the table."""
    splits, paper = list(manifest["splits"].values()), manifest["paper"]
    printed = [paper.get("documents", {}).get(split, "-") for split in manifest["splits"]]
    yield "documents", [each["documents"] for each in splits], " / ".join(printed) if "documents" in paper else ""
    for name in ("lines", "sentences"):
        yield name, [each[name] for each in splits], ""
    for name in filter(splits[0]["per_document"].__contains__, PAPER_ROWS):
        figures = [each["per_document"][name] for each in splits]
        yield f"{name} a document".replace("_", " "), figures, paper.get(name, "")
    for name in filter(splits[0].__contains__, ("source_tokens", "target_tokens")):
        for figure in ("mean", "max"):
            yield f"{name} a line, {figure}".replace("_", " "), [each[name][figure] for each in splits], ""
    counts = [Counter(each.get("labels", {})) for each in splits]
    total = sum(counts, Counter[str]())
    labels = sorted(total, key=lambda label: (-total[label], label))
    for label in labels[:LABEL_ROWS]:
        yield f"label {shown_label(label):.60}", [count[label] for count in counts], ""
    if others := labels[LABEL_ROWS:]:
        yield f"{len(others):,} other labels", [sum(map(count.__getitem__, others)) for count in counts], ""
    if isinstance(kind_of(manifest["options"]["kind"]), DocumentQuestionKind):
        yield "gold answers that no window has", list(map(answers_lost, splits)), ""
    if any("round_trip" in each for each in splits):
        trips = [each.get("round_trip") for each in splits]
        changed = [f"{trip['changed']:,} of {trip['segments']:,}" if trip else "-" for trip in trips]
        yield "target segments that come back changed", changed, ""
        yield "BLEU of what comes back", [f"{trip['bleu']:.2f}" if trip else "-" for trip in trips], ""
    for name in sorted({name for each in splits for name in each["treatments"]}):
        yield name.replace("_", " "), [each["treatments"].get(name, 0) for each in splits], ""
