"""CNN/DailyMail news and their highlights (Hermann et al. 2015), non-anonymised (See et al. 2017).

``--root`` is a folder with one of the two common releases:

Hugging Face ``cnn_dailymail`` 3.0.0 as CSV or JSON lines
    ``train``, ``validation`` and ``test`` with the ending ``.csv``, ``.jsonl`` or ``.json`` (also ``.gz``) and columns
    ``id``, ``article`` and ``highlights``, the latter with one sentence on each line: 287,113, 13,368 and 11,490
    articles.
The original stories
    ``cnn/stories/*.story`` and ``dailymail/stories/*.story`` with ``url_lists/all_train.txt``, ``all_val.txt`` and
    ``all_test.txt``: 287,227, 13,368 and 11,490 URLs. A story's file name is the SHA-1 of its URL.

Articles are running text, so ``--splitter`` is ``punctuation`` (as in the paper) or ``library``. 114 of the original
training stories have no article text; ``--on-empty drop``, the default here, drops and counts them.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.document import Document
from hat_fairseq.data.files import read_json_lines, read_lines

SPLITS = ("train", "valid", "test")
DEFAULTS = {
    "bpe": "gpt2",
    "splitter": "punctuation",
    "max_source_tokens": 1023,  # with </s> the paper's 1024
    "max_target_tokens": 255,
    "long_source": "truncate",
    "long_target": "truncate",
    "on_empty": "drop",
}
COLUMNS = ("id", "article", "highlights")
NAMES = {"train": ("train",), "valid": ("validation", "valid", "val"), "test": ("test",)}
URL_LISTS = {"train": "all_train.txt", "valid": "all_val.txt", "test": "all_test.txt"}
HIGHLIGHT = "@highlight"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the articles of a split, highlights as targets."""
    if root is None:
        raise ValueError("cnn_dm needs --root: the folder of the release")
    if (root / "url_lists").is_dir():
        return _read_stories(root, split)
    files = [file for name in NAMES[split] for file in sorted(root.glob(f"{name}.*")) if _format(file)]
    if len(files) != 1:
        found = " and ".join(map(str, files)) or "neither"
        raise ValueError(
            f"{root}: expected url_lists/ beside cnn/stories/ and dailymail/stories/, or one file "
            f"{NAMES[split][0]}.csv or {NAMES[split][0]}.jsonl (also .gz), found {found}"
        )
    return _read_csv(files[0]) if _format(files[0]) == ".csv" else _read_json_lines(files[0])


def _format(file: Path) -> str | None:
    ending = Path(file.name.removesuffix(".gz")).suffix
    return ending if ending in (".csv", ".jsonl", ".json") else None


def _read_csv(path: Path) -> Iterator[Document]:
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        header = next(rows, [])
        if set(header) != set(COLUMNS):
            raise ValueError(f"{path}:1: expected the columns {', '.join(COLUMNS)}, found {', '.join(header)}")
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{path}:{rows.line_num}: {len(row)} columns instead of {len(header)}")
            yield _document(dict(zip(header, row, strict=True)), f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}") from error


def _read_json_lines(path: Path) -> Iterator[Document]:
    for number, record in read_json_lines(path):
        where = f"{path}:{number}"
        if set(record) != set(COLUMNS):
            raise ValueError(f"{where}: expected an object with {', '.join(COLUMNS)}, found {', '.join(record)}")
        yield _document(record, where)


def _document(record: dict[str, str], where: str) -> Document:
    return Document.from_json({"id": record["id"], "text": record["article"], "target": record["highlights"]}, where)


def _read_stories(root: Path, split: str) -> Iterator[Document]:
    urls = root / "url_lists" / URL_LISTS[split]
    for number, url in read_lines(urls):
        story = f"{hashlib.sha1(url.strip().encode()).hexdigest()}.story"
        paths = [path for source in ("cnn", "dailymail") if (path := root / source / "stories" / story).is_file()]
        if not paths:
            raise ValueError(f"{urls}:{number}: {url} has no file cnn/stories/{story} or dailymail/stories/{story}")
        yield _read_story(paths[0])


def _read_story(path: Path) -> Document:
    """Paragraphs, then each highlight behind a line ``@highlight``."""
    lines = [stripped for _, line in read_lines(path) if (stripped := line.strip())]
    end = lines.index(HIGHLIGHT) if HIGHLIGHT in lines else len(lines)
    highlights = [line for line in lines[end:] if line != HIGHLIGHT]
    if not highlights:
        raise ValueError(f"{path}: no {HIGHLIGHT}, so this is no complete story")
    return Document(id=path.stem, text="\n".join(lines[:end]), target=tuple(highlights))
