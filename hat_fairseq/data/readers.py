"""Find the reader of a raw release: a reader module, or a folder of JSON lines or plain parallel text."""

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hat_fairseq.data import plain_text
from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.data.tables import ENDINGS, is_table

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

Read = Callable[[str, Path | None, Counter[str]], Iterator[Record]]


@dataclass(frozen=True)
class Reader:
    """The contents of a reader module."""

    name: str  # for messages and the manifest
    # `read(split, root, counts)` yields the documents of one split; `root` is where the raw release is, or None;
    # everything the reader drops or changes is added to `counts`
    read: Read
    splits: tuple[str, ...] = SPLITS  # the splits it has, in fairseq's words: train, valid, test
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options of `hat preprocess` that suit this dataset
    # documents of a split of a complete release, several numbers where several are in use
    release: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # what the paper prints about the dataset, as it prints it; see `manifest.PAPER_ROWS`
    paper: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "text"  # of its records
    size: int = 0  # bytes of its files, 0 if that is not known
    files: Mapping[str, Path] = field(default_factory=dict)  # of splits whose records are the lines of a file

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


def _folder_reader(folder: Path, kind: str) -> Reader:
    """Splits as JSON lines or tables, or as two files of parallel text, which are aligned by default."""
    by_split: dict[str, Path | tuple[Path, Path]] = {}
    for split, stem in _splits(folder):
        file, pair = _file(folder, stem), plain_text.files(folder, stem)
        if split in by_split or (file and pair):
            raise ValueError(f"{folder} has the split {split} twice; remove one of its files")
        if files := file or pair:
            by_split[split] = files
    parallel = any(isinstance(files, tuple) for files in by_split.values())
    data_files = (path for path in sorted(folder.iterdir()) if DATA_FILE.fullmatch(path.name))
    if unreadable := [path for path in data_files if not (path.is_file() or path.is_dir())]:
        raise ValueError(f"{unreadable[0]} is a link to nothing or to itself, or a pipe; put a file there")
    if not by_split:
        raise ValueError(f"{folder} has no {_EXPECTED}")
    if parallel and not kind_of(kind).has_target:
        raise ValueError(f"{folder} has parallel text; --kind {kind} needs JSON lines or a table")
    tests = [split for split in by_split if split.startswith("test")]
    if tests != [f"test{number or ''}" for number in range(len(tests))]:
        raise ValueError(f"{folder} has the splits {', '.join(tests)}; fairseq numbers them test, test1, test2, ...")
    used = {path for files in by_split.values() for path in (files if isinstance(files, tuple) else (files,))}
    if others := sorted(path.name for path in folder.iterdir() if DATA_FILE.fullmatch(path.name) and path not in used):
        raise ValueError(
            f"{folder} has {others[0]}, which is no split: call splits train, valid (or {', '.join(VALID[1:])}), test, "
            "test1, ..., and move other files elsewhere"
        )

    def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
        if isinstance(files := by_split[split], tuple):
            return plain_text.read(*files)
        return read_records(files, kind)

    defaults = {"aligned": True, "target_separator": True} if parallel else {}
    lines = {split: path for split, path in by_split.items() if isinstance(path, Path) and not is_table(path)}
    size = sum(path.stat().st_size for path in used)
    return Reader(folder.name, read, tuple(by_split), defaults, kind=kind, size=size, files=lines)


def _splits(folder: Path) -> Iterator[tuple[str, str]]:
    """The splits that may be in a folder, with the name that its files have, in fairseq's order."""
    stems = {path.name.partition(".")[0] for path in folder.iterdir()}
    yield "train", "train"
    yield from (("valid", stem) for stem in VALID if stem in stems)
    tests = [stem for stem in stems if re.fullmatch(r"test([1-9]\d*)?", stem)]
    yield from ((stem, stem) for stem in sorted(tests, key=lambda stem: (len(stem), stem)))


def _file(folder: Path, split: str) -> Path | None:
    """The file of a split, or its folder in a saved `datasets` folder."""
    candidates = [file for ending in (".jsonl", ".jsonl.gz", *ENDINGS) if (file := folder / (split + ending)).is_file()]
    candidates += [folder / split] if is_table(folder / split) else []
    if len(candidates) > 1:
        raise ValueError(f"{candidates[0]} and {candidates[1]} both exist; remove one of them")
    return candidates[0] if candidates else None


def _module_reader(path: Path) -> Reader:
    spec = importlib.util.spec_from_file_location(f"hat_reader_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with _importable(path.resolve().parent):
        spec.loader.exec_module(module)
    if not callable(getattr(module, "read", None)):
        raise ValueError(f"{path} is no reader: it has no function read(split, root, counts)")
    try:
        kind = kind_of(getattr(module, "KIND", "text"))
    except ValueError as error:
        raise ValueError(f"{path}: its KIND is an {error}") from error
    return Reader(
        name=path.stem,
        read=module.read,
        splits=tuple(getattr(module, "SPLITS", SPLITS)),
        defaults=getattr(module, "DEFAULTS", {}),
        release=getattr(module, "RELEASE", {}),
        paper=getattr(module, "PAPER", {}),
        kind=kind.name,
    )


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Lets a reader import modules beside it by their names; another folder may have others of the same names."""
    loaded = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in sys.modules.keys() - loaded:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
                del sys.modules[name]
