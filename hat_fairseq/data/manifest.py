"""The manifest of a preprocessing run: counts of the input, of the output, and of everything dropped or replaced."""

import json
import platform
import shlex
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.options import Options
from hat_fairseq.data.outputs import files_below
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.rows import Row

FILE_NAME = "manifest.json"
HASHED = 1_000_000_000  # bytes; of a file up to this size the hash is always compared, in less than a second
_PACKAGES = ("fairseq-fixed", "hat_fairseq", "sentence-splitter", "tokenizers", "sentencepiece", "sacremoses", "jieba")

# Means for each document, as in Tables 1 and 2 of Rohde et al. 2021: words before any tokenisation, BPE tokens before
# anything is cut.
PAPER_ROWS = ("source_words", "source_tokens", "target_words", "target_tokens")
MAX_INPUTS = 1000
LABEL_ROWS = 40  # of the table; the manifest has all


@dataclass
class SplitReport:
    """Figures of one split."""

    kind: Kind  # of its records
    documents: int = 0  # how many records there are
    sentences: int = 0  # how many markers there are in all lines
    # how many lines of each side have how many tokens; markers, separators and the final `</s>` count
    lengths: dict[str, Counter[int]] = field(default_factory=lambda: {"source": Counter(), "target": Counter()})
    totals: Counter[str] = field(default_factory=Counter)  # the sums of `PAPER_ROWS`
    labels: Counter[str] = field(default_factory=Counter)  # how often each label occurs
    treatments: Counter[str] = field(default_factory=Counter)  # everything replaced, cut or dropped

    def count(self, row: Row) -> None:
        """Count a row: its markers, and its tokens with `</s>`."""
        self.sentences += row.segments
        for side in self.lengths.keys() & row.streams.keys():
            self.lengths[side][len(row.streams[side]) + 1] += 1

    def add(self, figures: Mapping[str, Any]) -> None:
        """Add the figures of another report, as JSON has them."""
        self.documents += figures["documents"]
        self.sentences += figures["sentences"]
        for name in ("totals", "labels", "treatments"):
            getattr(self, name).update(figures[name])
        for side, lengths in figures["lengths"].items():
            self.lengths[side].update({int(length): lines for length, lines in lengths.items()})

    def to_json(self) -> dict[str, Any]:
        sides = ("source", "target") if self.kind.has_target else ("source",)
        rows = [row for row in PAPER_ROWS if row.startswith(sides) and (self.kind.is_text or "words" not in row)]
        lines = self.lengths["source"].total()
        record: dict[str, Any] = {"documents": self.documents, "lines": lines, "sentences": self.sentences}
        record |= {f"{side}_tokens": _summary(self.lengths[side]) for side in sides}
        record["per_document"] = {row: round(self.totals[row] / max(1, self.documents), 1) for row in rows}
        record |= {} if self.kind.has_target else {"labels": dict(sorted(self.labels.items()))}
        return record | {"treatments": dict(sorted((+self.treatments).items()))}


def write_manifest(
    directory: Path, reader: Reader, options: Options, reports: Mapping[str, SplitReport], inputs: list[dict[str, Any]]
) -> dict[str, Any]:
    """Write `manifest.json` into `directory` with the sizes and hashes of its files; return it."""
    files = files_below(directory)
    manifest = {
        "reader": reader.name,
        "command": shlex.join(sys.argv),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "inputs": inputs,
        "options": asdict(options),
        "versions": versions(),
        "splits": {split: report.to_json() for split, report in reports.items()},
        "paper": dict(reader.paper),
        "sha256": {name: sha256_of(directory / name) for name in files},
        "files": {name: (directory / name).stat().st_size for name in files},
    }
    path = directory / FILE_NAME
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return manifest


def check_files(data: str | Path, split: str, contents: bool = False) -> None:
    """Compares the files of a split, and the dictionaries, in `data` (a `bin`) with the manifest beside it, if any.

    ValueError if one is missing or has changed; `contents`: files above `HASHED` bytes are also compared by hash.
    """
    root = Path(data).resolve()
    try:
        manifest = json.loads(root.with_name(FILE_NAME).read_text(encoding="utf-8"))
        sizes, hashes = dict(manifest["files"]), manifest["sha256"]
    except (OSError, ValueError, KeyError, TypeError):  # none, or of an earlier version
        return
    for name, size in sizes.items():
        path = Path(data, name.removeprefix(f"{root.name}/"))
        if not name.startswith(f"{root.name}/") or not path.name.startswith((f"{split}.", "dict.")):
            continue
        if not path.is_file():
            raise ValueError(f"{path} is missing; run hat preprocess again")
        if (actual := path.stat().st_size) != size:
            raise ValueError(f"{path} has {actual} bytes instead of {size}: damaged; run hat preprocess again")
        if (contents or size <= HASHED) and sha256_of(path) != hashes[name]:
            raise ValueError(f"{path} has changed since {FILE_NAME} was written; run hat preprocess again")


def describe_inputs(inputs: Iterable[Path]) -> list[dict[str, Any]]:
    """Path, size in bytes and time of change of each file; of more than `MAX_INPUTS` files a row for each folder."""
    rows = [(path, path.stat()) for path in sorted(inputs)]
    if len(rows) <= MAX_INPUTS:
        return [{"path": str(path), "size": stat.st_size, "changed": _date(stat.st_mtime)} for path, stat in rows]
    described = []
    for folder, group in groupby(rows, key=lambda row: row[0].parent):
        stats = [stat for _, stat in group]
        latest = _date(max(stat.st_mtime for stat in stats))
        total = sum(stat.st_size for stat in stats)
        described.append({"path": str(folder), "files": len(stats), "size": total, "changed": latest})
    return described


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Returns the versions of all packages that can change the result."""
    installed = {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def table(manifest: Mapping[str, Any]) -> str:
    """Returns the manifest's figures as a short table: one column for each split, and one for what the paper prints."""
    splits, paper = manifest["splits"], manifest["paper"]
    first = next(iter(splits.values()))
    printed = paper.get("documents", {})
    in_paper = {"documents": " / ".join(printed.get(split, "-") for split in splits) if printed else ""}
    rows = [["", *splits, *(["paper"] if paper else [])]]
    rows += [[name, *(f"{split[name]:,}" for split in splits.values())] for name in ("documents", "lines", "sentences")]
    for name in filter(first["per_document"].__contains__, PAPER_ROWS):
        label = f"{name.replace('_', ' ')} a document"
        in_paper[label] = paper.get(name, "")
        rows.append([label, *(f"{split['per_document'][name]:,}" for split in splits.values())])
    for name in filter(first.__contains__, ("source_tokens", "target_tokens")):
        for figure in ("mean", "max"):
            label = f"{name.replace('_', ' ')} a line, {figure}"
            rows.append([label, *(f"{split[name][figure]:,}" for split in splits.values())])
    rows += _label_rows(splits)
    figures = list(map(kind_of(manifest["options"]["kind"]).figures, splits.values()))
    rows += [[name, *(each[name] for each in figures)] for name in figures[0]]
    for name in sorted({name for split in splits.values() for name in split["treatments"]}):
        label = name.replace("_", " ")
        rows.append([label, *(f"{split['treatments'].get(name, 0):,}" for split in splits.values())])
    if paper:
        rows[1:] = [[*row, in_paper.get(row[0], "")] for row in rows[1:]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return "\n".join("  ".join(cells).rstrip() for cells in texts)


def _label_rows(splits: Mapping[str, Any]) -> list[list[str]]:
    """Counts of the most frequent labels of all splits."""
    total: Counter[str] = Counter()
    for split in splits.values():
        total.update(split.get("labels", {}))
    counted = [(label, [split["labels"].get(label, 0) for split in splits.values()]) for label in total]
    counted.sort(key=lambda row: (-total[row[0]], row[0]))
    rows = [
        [f"label {(label if label.isprintable() else repr(label))[:60]}", *(f"{n:,}" for n in numbers)]
        for label, numbers in counted[:LABEL_ROWS]
    ]
    if others := counted[LABEL_ROWS:]:
        sums = (sum(column) for column in zip(*(numbers for _, numbers in others), strict=True))
        rows.append([f"{len(others):,} other labels", *(f"{number:,}" for number in sums)])
    return rows


def _summary(lengths: Counter[int]) -> dict[str, float]:
    """Sum, mean and maximum."""
    total, lines = sum(length * number for length, number in lengths.items()), lengths.total()
    return {"total": total, "mean": round(total / lines, 1) if lines else 0.0, "max": max(lengths, default=0)}
