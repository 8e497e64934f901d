"""Find what turns a raw release into documents: a reader module, or a folder of JSON lines."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hat_fairseq.data.document import Document, read_documents

READERS = Path(__file__).resolve().parents[2] / "preprocess"
SPLITS = ("train", "valid", "test")

Read = Callable[[str, Path | None, Counter[str]], Iterator[Document]]


@dataclass(frozen=True)
class Reader:
    """What a reader module offers.

    Args:
        name: for messages and the manifest.
        read: ``read(split, root, counts)`` yields the documents of one split; ``root`` is where the raw release is, or
            None; everything the reader drops or changes is added to ``counts``.
        splits: the splits it has, in fairseq's words: train, valid, test.
        defaults: options of ``hat preprocess`` that suit this dataset.
    """

    name: str
    read: Read
    splits: tuple[str, ...] = SPLITS
    defaults: Mapping[str, Any] = field(default_factory=dict)


def find_reader(name: str) -> Reader:
    """Find a reader by the name of a module in ``preprocess/``, the path of a .py file, or the path of a folder.

    Raises:
        ValueError: there is none, or it is no reader.
    """
    own = READERS / f"{name}.py"
    path = own if own.is_file() else Path(name)
    if path.is_dir():
        return _folder_reader(path)
    if path.suffix == ".py" and path.is_file():
        return _module_reader(path)
    known = ", ".join(sorted(file.stem for file in READERS.glob("*.py")))
    raise ValueError(
        f"no reader {name!r}: give one of {known or 'those in preprocess/'}, the path of a reader (.py), or a folder "
        f"with {', '.join(f'{split}.jsonl' for split in SPLITS)} (or .jsonl.gz)"
    )


def _folder_reader(folder: Path) -> Reader:
    files = {split: file for split in SPLITS if (file := _json_lines(folder, split)) is not None}
    if not files:
        raise ValueError(f"{folder} has no {', '.join(f'{split}.jsonl' for split in SPLITS)} (or .jsonl.gz)")
    return Reader(folder.name, lambda split, root, counts: read_documents(files[split]), tuple(files))


def _json_lines(folder: Path, split: str) -> Path | None:
    found = [file for suffix in (".jsonl", ".jsonl.gz") if (file := folder / (split + suffix)).is_file()]
    if len(found) > 1:
        raise ValueError(f"{found[0]} and {found[1]} both exist; remove one of them")
    return found[0] if found else None


def _module_reader(path: Path) -> Reader:
    spec = importlib.util.spec_from_file_location(f"hat_reader_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "read", None)):
        raise ValueError(f"{path} is no reader: it has no function read(split, root, counts)")
    return Reader(path.stem, module.read, tuple(getattr(module, "SPLITS", SPLITS)), getattr(module, "DEFAULTS", {}))
