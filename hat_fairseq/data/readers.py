"""Find the reader of a raw release: a reader module, or a folder with records or parallel text for each split.

The end of its name says what a file of records is (`formats.py`). A split may have several, as the Hub stores them:
`data/train-00000-of-00002.parquet`, or `train/0000.parquet`. The two files of parallel text (`tables.py`) are called
`train.source` and `train.target`, or as fairseq's examples name them, with both languages and their direction:
`train.en-de.en` and `train.en-de.de`; they may be compressed. The first language is the source, unless
`--source-language` and `--target-language` say the reverse.
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
    JSON,
    JSON_LINES,
    NAMED,
    SUBRIP,
    TEXT,
    WEBVTT,
    ending_of,
    format_of_name,
    is_saved_dataset,
    opened,
)
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.language import base_language, parse_code
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import json_line, read_files
from hat_fairseq.data.tables import read_parallel
from hat_fairseq.suggestions import did_you_mean_some
from hat_fairseq.versions import digest_of

logger = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parents[1]
#: In the installed package, or beside it in a clone.
READERS = next((path for path in (_PACKAGE / "preprocess", _PACKAGE.parent / "preprocess") if path.is_dir()), _PACKAGE)
IS_READER = re.compile(r"^(def read\(|read = )", re.MULTILINE)
SPLITS = ("train", "valid", "test")
VALID = ("valid", "val", "dev", "validation")  # what the validation split of a folder may be called
_CODES = re.compile(r"^\w+\.([a-z]{2,3})-([a-z]{2,3})\.")  # of parallel text, in the names of its files
_SPLIT = re.compile(rf"train|{'|'.join(VALID)}|test([1-9]\d*)?")
_LIKE_SPLIT = re.compile(rf"(train|{'|'.join(VALID)}|test\d*)(-.*)?", re.IGNORECASE)
_SHARD = re.compile(r"(?P<split>\w+)-(?P<number>\d{5})-of-(?P<all>\d{5})(-[0-9a-f]+)?")
_JSON = (JSON, JSON_LINES)
# What lies beside data and is none, whatever it holds.
_NO_DATA = re.compile(
    r"\..*|.*~|(readme|licen[cs]e|copying|notice|citation|changelog|authors|attribution|source)(\.(txt|html?|pdf))?|"
    r".*sums?(\.txt)?|makefile|dockerfile|.*\.(md|rst|html?|pdf|py|ipynb|sh|ya?ml|toml|cfg|ini|bib|cff|png|jpe?g|svg|log|"
    r"lock|md5|sha\d+|asc|sig|bak|orig|old|tmp|swp|part|crc)",
    re.IGNORECASE,
)
_DATA_ENDINGS = ({*NAMED} - {"json", "txt"}) | {"source", "target"}
_EXPECTED = (
    f"{', '.join(f'{split}.jsonl' for split in SPLITS)} (or .json, .csv, .parquet and so on), or train.source and "
    "train.target and so on for parallel text with blank lines between documents"
)

Languages = tuple[str | None, str | None]  # of source and target, codes of BCP 47


@dataclass(frozen=True)
class Split:
    """The files of a split: of records, or the source and the target of parallel text."""

    name: str  # as the files have it, such as `dev`
    files: tuple[Path, ...]
    is_parallel: bool = False


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
    files: Mapping[str, Path] = field(default_factory=dict)  # of splits whose records are the JSON of a file as it is
    sources: str = ""  # digest of its module and of those beside it that it imports; empty for a folder of data

    def lines(self, split: str, root: Path | None, counts: Counter[str]) -> Iterator[tuple[str, str]]:
        """Yields (place, JSON line) of each record of a split. Lines of files are not validated yet."""
        if path := self.files.get(split):
            with opened(path, counts=counts) as file:
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
    splits = {split: _in_direction(files, languages, of_model) for split, files in _files_of_splits(folder).items()}
    parallel = [split.files for split in splits.values() if split.is_parallel]
    if parallel and not kind_of(kind).has_target:
        raise ValueError(f"{folder} has parallel text; --kind {kind} needs records: JSON or a table")
    if parallel:
        columns.check_for(f"{folder}, which has parallel text")

    def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
        files = splits[split].files
        return (
            read_parallel(*files)
            if splits[split].is_parallel
            else read_files(files, kind, columns, counts, splits[split].name)
        )

    stated = ("", "") if of_model else languages
    defaults = {"aligned": True, "target_separator": True, **_languages_of(parallel, stated)} if parallel else {}
    single = {split: each.files[0] for split, each in splits.items() if len(each.files) == 1}
    json = {split: path for split, path in single.items() if not columns and NAMED.get(ending_of(path.name)) in _JSON}
    size = sum(path.stat().st_size for split in splits.values() for path in split.files)
    return Reader(folder.name, read, tuple(splits), defaults, kind=kind, size=size, files=json)


def _in_direction(split: Split, languages: Languages, of_model: bool) -> Split:
    """Returns the two files of parallel text as source and target; a name such as `train.ja-en.ja` says either order.

    ValueError for languages that are neither those of the name nor the reverse, unless they are those of a model. A
    code that is none of BCP 47, such as `cn`, may be any language.
    """
    files, match = split.files, _CODES.search(split.files[0].name)
    if match is None or not split.is_parallel or languages == (None, None):
        return split
    source, target = (code and _known_language(code) for code in languages)
    first, second = map(_known_language, match.groups())
    if _is_one(source, first) and _is_one(target, second):
        return split
    if None not in languages and _is_one(source, second) and _is_one(target, first):
        return Split(split.name, files[::-1], is_parallel=True)
    if of_model:
        return split
    flags = ((f"--{side}-language {code}", code) for side, code in zip(("source", "target"), languages, strict=True))
    raise ValueError(
        f"{' '.join(flag for flag, code in flags if code)}: {files[0]} and {files[1].name} are of the languages "
        f"{match[1]} and {match[2]}; give both flags, in either order, or rename the files"
    )


def _languages_of(parallel: Collection[tuple[Path, ...]], stated: Languages) -> dict[str, str]:
    """Returns the languages of parallel text, as far as the names of all its files say the same ones, as defaults.

    Warns of names that do not, and of codes that are none, where the language of a side is not `stated`.
    """
    languages: dict[str, str] = {}
    for side, name in enumerate(("source_language", "target_language")):
        codes = {
            files[side].name.removeprefix(match[0]).partition(".")[0] if (match := _CODES.search(files[0].name)) else ""
            for files in parallel
        }
        if len(codes) == 1 and _known_language(code := next(iter(codes))) is not None:
            languages[name] = code
        elif any(codes) and stated[side] is None:
            says = " and ".join(sorted(map(repr, filter(None, codes))))
            print(
                f"warning: {says} in the names of the files is not one code of BCP 47, so the {name.partition('_')[0]} "
                f"is taken for English: say its language with --{name.replace('_', '-')}",
                file=sys.stderr,
            )
    return languages


def _known_language(code: str) -> str | None:
    """Returns the language of a code without script and region, None for an unknown one."""
    try:
        return base_language(parse_code(code))
    except ValueError:
        return None


def _is_one(language: str | None, other: str | None) -> bool:
    """Tells whether two languages are the same, as far as both are known."""
    return language is None or other is None or language == other


def _files_of_splits(folder: Path) -> dict[str, Split]:
    """The files of each split, in fairseq's order, of a folder, or of the only one in it that has splits.

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
    tests = sorted((stem for stem in forms if stem.startswith("test")), key=lambda stem: int(stem[4:] or 0))
    for split, stem in [("train", "train"), *(("valid", stem) for stem in VALID), *((stem, stem) for stem in tests)]:
        of_split = forms.get(stem, [])
        if len(of_split) > 1 or (of_split and split in splits):
            raise ValueError(f"{folder} has the split {split} twice; remove one of its files")
        if of_split:
            splits[split] = of_split[0]
    _check_others(folder, {path for split in splits.values() for path in split.files})
    return splits


def _forms_in(folder: Path) -> dict[str, list[Split]]:
    """All forms in which a folder has each split, by the name of the split."""
    by_stem: dict[str, list[Path]] = {}
    for path in filter(_may_be_data, sorted(folder.iterdir())):
        by_stem.setdefault(_stem(path), []).append(path)
    forms = {stem: _forms(folder, stem, paths) for stem, paths in by_stem.items() if _SPLIT.fullmatch(stem)}
    return {stem: of_split for stem, of_split in forms.items() if of_split}


def _may_be_data(path: Path) -> bool:
    return _NO_DATA.fullmatch(path.name) is None


def _stem(path: Path) -> str:
    stem = path.name.partition(".")[0]
    return match["split"] if (match := _SHARD.fullmatch(stem)) else stem


def _check_others(folder: Path, used: Collection[Path]) -> None:
    """Names the files of a folder that are not read; ValueError for one whose name ends as data do."""
    others = [path for path in filter(_may_be_data, sorted(folder.iterdir())) if not {path, *_inside(path)} & {*used}]
    for path in others:
        is_called_so = _LIKE_SPLIT.fullmatch(_stem(path)) is not None
        has_files = not path.is_dir() or is_saved_dataset(path) or (is_called_so and any(_inside(path)))
        if has_files and (is_called_so or path.is_dir() or ending_of(path.name) in _DATA_ENDINGS):
            raise ValueError(
                f"{folder} has {path.name}, which is no split, or no file: call splits train, valid (or "
                f"{', '.join(VALID[1:])}), test, test1, ..., and move other files elsewhere"
            )
    if names := [path.name for path in others if path.is_file()]:
        logger.warning("left out of %s, because they are no splits: %s", folder, ", ".join(names))


def _inside(path: Path) -> list[Path]:
    """The files in a folder that may be data; of a file none."""
    return [each for each in sorted(path.iterdir()) if _may_be_data(each) and each.is_file()] if path.is_dir() else []


def _forms(folder: Path, stem: str, paths: Sequence[Path]) -> list[Split]:
    """A split as all its files, its folder (saved by `datasets`, or with Parquet alone), its shards, and its pairs.

    ValueError for a side of a pair alone, for absent shards, and for a text.
    """
    folders = [path for path in paths if path.name == stem and path.is_dir()]
    forms = [Split(stem, (path,)) for path in folders if is_saved_dataset(path)]
    tables = [_inside(path) for path in folders if not is_saved_dataset(path)]
    forms += [Split(stem, tuple(each)) for each in tables if {ending_of(path.name) for path in each} == {"parquet"}]
    pairs = _pairs(folder, stem, paths)
    shards = _shards(stem, [path for path in paths if path.is_file() and _SHARD.fullmatch(path.name.partition(".")[0])])
    used = {path for split in (*pairs, *shards) for path in split.files}
    files_of_records = [path for path in paths if path.is_file() and path not in used]
    for path in files_of_records:
        if (form := format_of_name(path)) in (TEXT, SUBRIP, WEBVTT):
            raise ValueError(
                f"{path} is {form}: write JSON lines or a table, call parallel text {stem}.source and {stem}.target, "
                "or move the file elsewhere"
            )
    return [*forms, *pairs, *shards, *(Split(stem, (path,)) for path in files_of_records)]


def _pairs(folder: Path, stem: str, paths: Sequence[Path]) -> list[Split]:
    """The pairs of files of parallel text."""
    files = {str(Path(path.name).with_suffix("")) if path.suffix in ENDINGS else path.name: path for path in paths}
    pairs = {(f"{stem}.source", f"{stem}.target")}
    for name in files:
        if match := re.fullmatch(rf"({stem}\.([a-z]{{2,3}})-([a-z]{{2,3}}))\.(\2|\3)", name):
            pairs.add((f"{match[1]}.{match[2]}", f"{match[1]}.{match[3]}"))
    splits = []
    for pair in sorted(pair for pair in pairs if files.keys() & pair):
        if missing := [name for name in pair if name not in files]:
            raise ValueError(f"{folder / missing[0]} is missing; {' and '.join(pair)} go together")
        splits.append(Split(stem, (files[pair[0]], files[pair[1]]), is_parallel=True))
    return splits


def _shards(stem: str, paths: Sequence[Path]) -> list[Split]:
    """The files of a split that are numbered, such as `train-00000-of-00002.parquet`; ValueError if one is absent."""
    if not paths:
        return []
    matches = [match for path in paths if (match := _SHARD.fullmatch(path.name.partition(".")[0]))]
    numbers, number_of_all = [int(match["number"]) for match in matches], {match["all"] for match in matches}
    if len(number_of_all) > 1 or numbers != list(range(int(matches[0]["all"]))):
        names = ", ".join(path.name for path in paths)
        raise ValueError(f"{paths[0].parent} should have each shard of {stem} once, and has {names}")
    return [Split(stem, tuple(paths))]
