"""Find the reader of a raw release: a reader module, or a folder of JSON lines, tables or plain parallel text.

The two files of parallel text (`tables.py`) are called `train.source` and `train.target`, or as fairseq's examples name
them, with both languages and their direction: `train.en-de.en` and `train.en-de.de`; each may end in `.gz`.
"""

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from hat_fairseq.data.files import at, read_lines
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.tables import TABLES, is_table, read_parallel
from hat_fairseq.versions import digest_of

_PACKAGE = Path(__file__).resolve().parents[1]
#: In the installed package, or beside it in a clone.
READERS = next((path for path in (_PACKAGE / "preprocess", _PACKAGE.parent / "preprocess") if path.is_dir()), _PACKAGE)
IS_READER = re.compile(r"^(def read\(|read = )", re.MULTILINE)
SPLITS = ("train", "valid", "test")
VALID = ("valid", "val", "dev", "validation")  # what the validation split of a folder may be called
DATA_FILE = re.compile(r"(?!dataset_dict\.json).*\.(jsonl|json|csv|tsv|parquet|source|target)(\.gz)?")
_EXPECTED = (
    f"{', '.join(f'{split}.jsonl' for split in SPLITS)} (or .jsonl.gz, .csv, .parquet), or train.source and "
    "train.target and so on for parallel text with blank lines between documents"
)


@dataclass(frozen=True)
class Reader:
    """The contents of a reader module."""

    name: str  # for messages and the manifest
    # `read(split, root, counts)` yields the documents of one split; `root` is where the raw release is, or None;
    # everything the reader drops or changes is added to `counts`
    read: Callable[[str, Path | None, Counter[str]], Iterator[Record]]
    splits: tuple[str, ...] = SPLITS  # the splits it has, in fairseq's words: train, valid, test
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options of `hat preprocess` that suit this dataset
    # documents of a split of a complete release, several numbers where several are in use
    release: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # what the paper prints about the dataset, as it prints it; see `manifest.PAPER_ROWS`
    paper: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "text"  # of its records
    size: int = 0  # bytes of its files, 0 if that is not known
    files: Mapping[str, Path] = field(default_factory=dict)  # of splits whose records are the lines of a file
    sources: str = ""  # digest of its module and of those beside it that it imports; empty for a folder of data

    def lines(self, split: str, root: Path | None, counts: Counter[str]) -> Iterator[tuple[str, str]]:
        """Where each record of a split stands, and the record as a JSON line, not checked yet if it is of a file."""
        if path := self.files.get(split):
            yield from ((f"{path}:{number}", line) for number, line in read_lines(path))
            return
        kind = kind_of(self.kind)
        for record in self.read(split, root, counts):
            kind.check(record)
            yield record.origin or "", json_line(record)


def find_reader(name: str, kind: str | None = None) -> Reader:
    """Find a reader by the name of a module in `preprocess/`, the path of a .py file, or the path of a folder.

    `kind`: of its records; None for what a module says, and for documents in a folder. ValueError if there is no such
    reader, or it yields something else.
    """
    own = READERS / f"{name}.py"
    bare = name == Path(name).name  # ./imdb is a folder of the user's, imdb our reader
    path = own if bare and own.is_file() else Path(name)
    if path.is_dir():
        return _folder_reader(path, kind or "text")
    if path.suffix == ".py" and path.is_file():
        reader = _module_reader(path)
        if kind not in (None, reader.kind):
            raise ValueError(f"reader {reader.name} yields data of --kind {reader.kind}, not {kind}")
        return reader
    raise ValueError(
        f"no reader {name!r}: give one of {', '.join(names()) or 'those in preprocess/'}, the path of a reader (.py), "
        f"or a folder with {_EXPECTED}"
    )


def names() -> list[str]:
    """The readers in `preprocess/`: its modules with a function `read`; the others are what several of them share."""
    return sorted(path.stem for path in READERS.glob("*.py") if IS_READER.search(path.read_text(encoding="utf-8")))


def _module_reader(path: Path) -> Reader:
    module, files = _imported(path)
    if not callable(getattr(module, "read", None)):
        raise ValueError(f"{path} is no reader: it has no function read(split, root, counts)")
    with at(path):
        kind = kind_of(getattr(module, "KIND", "text")).name
    return Reader(
        name=path.stem,
        read=module.read,
        splits=tuple(getattr(module, "SPLITS", SPLITS)),
        defaults=getattr(module, "DEFAULTS", {}),
        release=getattr(module, "RELEASE", {}),
        paper=getattr(module, "PAPER", {}),
        kind=kind,
        sources=digest_of(files, path.resolve().parent),
    )


def _imported(path: Path) -> tuple[ModuleType, set[Path]]:
    """Imports a reader, and modules beside it by their names; another folder may have others of the same names.

    Returns:
        the module, and the files of it and of those beside it that it imports.
    """
    spec = importlib.util.spec_from_file_location(f"hat_reader_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    folder, loaded = path.resolve().parent, set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        files = {name: Path(getattr(each, "__file__", None) or "/") for name, each in sys.modules.items()}
        for name in sys.modules.keys() - loaded:
            if files[name].parent == folder:
                del sys.modules[name]
    return module, {path.resolve(), *(file for name, file in files.items() if _is_beside(name, file, folder))}


def _is_beside(name: str, file: Path, folder: Path) -> bool:
    """Tells whether a module, or the package that it is in, lies in a folder; site-packages below it do not."""
    top = name.partition(".")[0]
    return file.is_relative_to(folder) and file.relative_to(folder).parts[0].partition(".")[0] == top != _PACKAGE.name


def _folder_reader(folder: Path, kind: str) -> Reader:
    """Splits as JSON lines or tables, or as two files of parallel text, which are aligned by default."""
    splits = _files_of_splits(folder)
    parallel = any(len(files) == 2 for files in splits.values())
    if parallel and not kind_of(kind).has_target:
        raise ValueError(f"{folder} has parallel text; --kind {kind} needs JSON lines or a table")

    def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
        files = splits[split]
        return read_parallel(*files) if len(files) == 2 else read_records(files[0], kind)

    defaults = {"aligned": True, "target_separator": True} if parallel else {}
    lines = {split: files[0] for split, files in splits.items() if len(files) == 1 and not is_table(files[0])}
    size = sum(path.stat().st_size for files in splits.values() for path in files)
    return Reader(folder.name, read, tuple(splits), defaults, kind=kind, size=size, files=lines)


def _files_of_splits(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The file of each split, or the source and the target, in fairseq's order; ValueError for other data files."""
    stems = {path.name.partition(".")[0] for path in folder.iterdir()}
    tests = sorted(
        (stem for stem in stems if re.fullmatch(r"test([1-9]\d*)?", stem)), key=lambda stem: int(stem[4:] or 0)
    )
    splits: dict[str, tuple[Path, ...]] = {}
    for split, stem in [("train", "train"), *(("valid", stem) for stem in VALID), *((stem, stem) for stem in tests)]:
        forms = _forms(folder, stem)
        if len(forms) > 1 or (forms and split in splits):
            raise ValueError(f"{folder} has the split {split} twice; remove one of its files")
        if forms:
            splits[split] = forms[0]
    if not splits:
        raise ValueError(f"{folder} has no {_EXPECTED}")
    used = {path for files in splits.values() for path in files}
    if others := sorted(path.name for path in folder.iterdir() if DATA_FILE.fullmatch(path.name) and path not in used):
        raise ValueError(
            f"{folder} has {others[0]}, which is no split, or no file: call splits train, valid (or "
            f"{', '.join(VALID[1:])}), test, test1, ..., and move other files elsewhere"
        )
    return splits


def _forms(folder: Path, stem: str) -> list[tuple[Path, ...]]:
    """All files of a split, or its folder in a saved `datasets` folder, or pairs; ValueError for a side alone."""
    paths = [folder / (stem + ending) for ending in (".jsonl", ".jsonl.gz", *TABLES)]
    forms: list[tuple[Path, ...]] = [(path,) for path in paths if path.is_file()]
    forms += [(folder / stem,)] if is_table(folder / stem) else []
    files = {path.name.removesuffix(".gz"): path for path in sorted(folder.glob(f"{stem}.*")) if path.is_file()}
    pairs = {(f"{stem}.source", f"{stem}.target")}
    for name in files:
        if match := re.fullmatch(rf"({stem}\.([a-z]{{2,3}})-([a-z]{{2,3}}))\.(\2|\3)", name):
            pairs.add((f"{match[1]}.{match[2]}", f"{match[1]}.{match[3]}"))
    for pair in sorted(pair for pair in pairs if files.keys() & pair):
        if missing := [name for name in pair if name not in files]:
            raise ValueError(f"{folder / missing[0]} is missing; {' and '.join(pair)} go together")
        forms.append((files[pair[0]], files[pair[1]]))
    return forms
