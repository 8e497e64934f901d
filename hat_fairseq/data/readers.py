"""Find the reader of a raw release: a reader module, or a folder with records or parallel text for each split.

The end of its name says what a file of records is (`formats.py`). A split may have several, as the Hub stores them:
`data/train-00000-of-00002.parquet`, or `train/0000.parquet`. Parallel text is two files (`parallel.py`).
"""

import importlib.util
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from hat_fairseq.data.columns import AS_NAMED, Columns
from hat_fairseq.data.compression import ENDINGS
from hat_fairseq.data.files import at
from hat_fairseq.data.formats import (
    ARROW,
    FORMATS,
    JSON,
    JSON_LINES,
    PLAIN_TEXT,
    SUBRIP,
    WEBVTT,
    DataFile,
    ending_of,
    is_saved_dataset,
    opened,
)
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.parallel import PARALLEL, Languages, Pair, in_direction, languages_of, read_parallel
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_files
from hat_fairseq.suggestions import did_you_mean_some
from hat_fairseq.versions import digest_of

logger = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parents[1]
#: In the installed package, or beside it in a clone.
READERS = next((path for path in (_PACKAGE / "preprocess", _PACKAGE.parent / "preprocess") if path.is_dir()), _PACKAGE)
IS_READER = re.compile(r"^(def read\(|read = )", re.MULTILINE)
SPLITS = ("train", "valid", "test")
VALID = ("valid", "val", "dev", "validation")  # what the validation split of a folder may be called
_SPLIT = re.compile(rf"train|{'|'.join(VALID)}|test([1-9]\d*)?")
_LIKE_SPLIT = re.compile(rf"(train|{'|'.join(VALID)}|test\d*)(-.*)?", re.IGNORECASE)
_SHARD = re.compile(r"(?P<split>\w+)-(?P<number>\d{5})-of-(?P<all>\d{5})(-[0-9a-f]+)?")
# What lies beside data and is none, whatever it holds.
_NO_DATA = re.compile(
    r"\..*|.*~|(readme|licen[cs]e|copying|notice|citation|changelog|authors|attribution|source)(\.(txt|html?|pdf))?|"
    r".*sums?(\.txt)?|makefile|dockerfile|.*\.(md|rst|html?|pdf|py|ipynb|sh|ya?ml|toml|cfg|ini|bib|cff|png|jpe?g|svg|log|"
    r"lock|md5|sha\d+|asc|sig|bak|orig|old|tmp|swp|part|crc)",
    re.IGNORECASE,
)
_DATA_ENDINGS = ({*FORMATS} - {"json", "txt"}) | {"source", "target"}
_EXPECTED = (
    f"{', '.join(f'{split}.jsonl' for split in SPLITS)} (or .json, .csv, .parquet and so on), or train.source and "
    "train.target and so on for parallel text with blank lines between documents"
)


@dataclass(frozen=True)
class Split:
    """The files of a split: of records, or the source and the target of parallel text."""

    name: str  # as the files have it, such as `dev`
    files: tuple[DataFile, ...]


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
    files: Mapping[str, DataFile] = field(default_factory=dict)  # of splits whose records are its JSON as it is
    sources: str = ""  # digest of its module and of those beside it that it imports; empty for a folder of data

    def lines(self, split: str, root: Path | None, counts: Counter[str]) -> Iterator[tuple[str, str]]:
        """Yields (place, JSON line) of each record of a split. Lines of files are not validated yet."""
        if data := self.files.get(split):
            with opened(data, counts=counts) as file:
                yield from file.json_texts()
            return
        kind = kind_of(self.kind)
        for record in self.read(split, root, counts):
            kind.check(record)
            yield record.origin or "", json_line(record)


def find_reader(
    name: str,
    kind: str | None = None,
    columns: Columns = AS_NAMED,
    languages: Languages = (None, None),
    of_model: bool = False,
) -> Reader:
    """Finds a reader by the name of a module in `preprocess/`, the path of a .py file, or the path of a folder.

    Args:
        kind: of its records; None for what a module says, and for documents in a folder.
        columns: of the tables in a folder.
        languages: of source and target, None for an unknown one; they say which file of parallel text is the source.
        of_model: the languages are those of a model, whose folder may have others.
    Raises:
        ValueError: there is no such reader, it yields something else, or parallel text is of other languages.
    """
    own = READERS / f"{name}.py"
    bare = name == Path(name).name  # ./imdb is a folder of the user's, imdb our reader
    path = own if bare and own.is_file() else Path(name)
    if path == own and Path(name).is_dir():
        logger.warning("%s is the reader of this package; the folder of this name here is ./%s", name, name)
    if path.is_dir():
        return _folder_reader(path, kind or "text", columns, languages, of_model)
    if path.suffix == ".py" and path.is_file():
        reader = _module_reader(path)
        if kind not in (None, reader.kind):
            raise ValueError(f"reader {reader.name} yields data of --kind {reader.kind}, not {kind}")
        columns.check_for(f"the reader {reader.name}, which names the keys of its records itself")
        return reader
    if path.is_file():
        raise ValueError(f"{name} is a file, and no reader (.py): give a folder with {_EXPECTED}")
    hint = did_you_mean_some(name, names(), f"; readers are {', '.join(names())}")
    raise ValueError(f"no reader {name!r}, and no folder: give a reader, or a folder with {_EXPECTED}{hint}")


def names() -> list[str]:
    """Lists the readers in `preprocess/`: its modules with a function `read`; the others are what several share."""
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


def _folder_reader(folder: Path, kind: str, columns: Columns, languages: Languages, of_model: bool) -> Reader:
    """Returns splits as files of records, or as two files of parallel text, which are aligned by default."""
    splits = _splits_of(folder)
    pairs = {
        name: in_direction((split.files[0].path, split.files[1].path), languages, of_model)
        for name, split in splits.items()
        if split.files[0].format == PARALLEL
    }
    if pairs and not kind_of(kind).has_target:
        raise ValueError(f"{folder} has parallel text; --kind {kind} needs records: JSON or a table")
    if pairs:
        columns.check_for(f"{folder}, which has parallel text")

    def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
        if split in pairs:
            return read_parallel(*pairs[split])
        return read_files(splits[split].files, kind, columns, counts, splits[split].name)

    stated = ("", "") if of_model else languages
    defaults = {"aligned": True, "target_separator": True, **languages_of(pairs.values(), stated)} if pairs else {}
    json = {
        name: split.files[0]
        for name, split in splits.items()
        if len(split.files) == 1 and split.files[0].format in (JSON, JSON_LINES) and not columns
    }
    size = sum(file.path.stat().st_size for split in splits.values() for file in split.files)
    return Reader(folder.name, read, tuple(splits), defaults, kind=kind, size=size, files=json)


def _splits_of(folder: Path) -> dict[str, Split]:
    """The splits, in fairseq's order, of a folder, or of the only one in it that has splits.

    ValueError for other data files; files that are no data are named.
    """
    if not (forms := _forms_in(folder)):
        _check_others(folder, ())
        below = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "." and _forms_in(path)]
        if len(below) > 1:
            raise ValueError(f"{folder} has splits in several folders: give one of {', '.join(map(str, below))}")
        if not below:
            raise ValueError(f"{folder} has no {_EXPECTED}")
        folder, forms = below[0], _forms_in(below[0])
    splits: dict[str, Split] = {}
    tests = sorted(sorted(stem for stem in forms if stem.startswith("test")), key=len)  # test2 before test10
    for split, stem in [("train", "train"), *(("valid", stem) for stem in VALID), *((stem, stem) for stem in tests)]:
        of_split = forms.get(stem, [])
        if len(of_split) > 1 or (of_split and split in splits):
            raise ValueError(f"{folder} has the split {split} twice; remove one of its files")
        if of_split:
            splits[split] = of_split[0]
    _check_others(folder, {file.path for split in splits.values() for file in split.files})
    return splits


def _forms_in(folder: Path) -> dict[str, list[Split]]:
    """All forms in which a folder has each split, by the name of the split."""
    by_stem: dict[str, list[Path]] = {}
    for path in _entries(folder):
        by_stem.setdefault(_stem(path), []).append(path)
    forms = {stem: _forms(folder, stem, paths) for stem, paths in by_stem.items() if _SPLIT.fullmatch(stem)}
    return {stem: of_split for stem, of_split in forms.items() if of_split}


def _entries(folder: Path) -> list[Path]:
    """The files and folders in a folder that may be data; of a file none."""
    return [path for path in sorted(folder.iterdir()) if not _NO_DATA.fullmatch(path.name)] if folder.is_dir() else []


def _stem(path: Path) -> str:
    stem = path.name.partition(".")[0]
    return match["split"] if (match := _SHARD.fullmatch(stem)) else stem


def _check_others(folder: Path, used: Collection[Path]) -> None:
    """Names the files of a folder that are not read; ValueError for one whose name ends as data do."""
    others = [path for path in _entries(folder) if not {path, *_entries(path)} & {*used}]
    for path in others:
        is_called_so = _LIKE_SPLIT.fullmatch(_stem(path)) is not None
        is_data = not path.is_dir() or is_saved_dataset(path)
        has_files = is_data or (is_called_so and any(each.is_file() for each in _entries(path)))
        if has_files and (is_called_so or path.is_dir() or ending_of(path.name) in _DATA_ENDINGS):
            raise ValueError(
                f"{folder} has {path.name}, which is no split, or no file: call splits train, valid (or "
                f"{', '.join(VALID[1:])}), test, test1, ..., and move other files elsewhere"
            )
    if names := [path.name for path in others if path.is_file()]:
        logger.warning("skipped in %s, because they are no splits: %s", folder, ", ".join(names))


def _forms(folder: Path, stem: str, paths: Sequence[Path]) -> list[Split]:
    """A split as all its files, its folder (saved by `datasets`, or with Parquet alone), its shards, and its pairs.

    ValueError for a side of a pair alone, for absent shards, and for a text.
    """
    saved = [path for path in paths if path.name == stem and path.is_dir()]
    pairs = _pairs(folder, stem, paths)
    shards = [path for path in paths if path.is_file() and _SHARD.fullmatch(path.name.partition(".")[0])]
    used = {*shards, *(path for pair in pairs for path in pair)}
    groups = [_of_folder(path) for path in saved]
    groups += [tuple(DataFile(path, PARALLEL) for path in pair) for pair in pairs]
    groups.append(_shards(stem, shards))
    records = [DataFile.of(path) for path in paths if path.is_file() and path not in used]
    if texts := [file for file in records if file.format in (PLAIN_TEXT, SUBRIP, WEBVTT)]:
        raise ValueError(
            f"{texts[0].path} is {texts[0].format}: write JSON lines or a table, call parallel text {stem}.source and "
            f"{stem}.target, or move the file elsewhere"
        )
    groups += [(file,) for file in records]
    return [Split(stem, files) for files in groups if files]


def _of_folder(path: Path) -> tuple[DataFile, ...]:
    """A folder that `datasets` saved, or the files in one with Parquet alone; nothing for another one."""
    if is_saved_dataset(path):
        return (DataFile(path, ARROW),)
    inside = [each for each in _entries(path) if each.is_file()]
    return tuple(map(DataFile.of, inside)) if {ending_of(each.name) for each in inside} == {"parquet"} else ()


def _pairs(folder: Path, stem: str, paths: Sequence[Path]) -> list[Pair]:
    """The pairs of files of parallel text of a split; ValueError for a side of a pair alone."""
    files = {str(Path(path.name).with_suffix("")) if path.suffix in ENDINGS else path.name: path for path in paths}
    names = {(f"{stem}.source", f"{stem}.target")}
    for name in files:
        if match := re.fullmatch(rf"({stem}\.([a-z]{{2,3}})-([a-z]{{2,3}}))\.(\2|\3)", name):
            names.add((f"{match[1]}.{match[2]}", f"{match[1]}.{match[3]}"))
    names = {pair for pair in names if files.keys() & pair}
    for pair in sorted(names):
        if missing := [name for name in pair if name not in files]:
            raise ValueError(f"{folder / missing[0]} is missing; {' and '.join(pair)} go together")
    return [(files[source], files[target]) for source, target in sorted(names)]


def _shards(stem: str, paths: Sequence[Path]) -> tuple[DataFile, ...]:
    """The files of a split that are numbered, such as `train-00000-of-00002.parquet`; ValueError if one is absent."""
    matches = [match for path in paths if (match := _SHARD.fullmatch(path.name.partition(".")[0]))]
    numbers, number_of_all = [int(match["number"]) for match in matches], {match["all"] for match in matches}
    if paths and (len(number_of_all) > 1 or numbers != list(range(int(matches[0]["all"])))):
        names = ", ".join(path.name for path in paths)
        raise ValueError(f"{paths[0].parent} should have each shard of {stem} once, and has {names}")
    return tuple(map(DataFile.of, paths))
