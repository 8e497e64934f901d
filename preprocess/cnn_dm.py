"""CNN/DailyMail news and their highlights (Hermann et al. 2015), non-anonymised (See et al. 2017).

`--root` is a folder with one of the two common releases:

Hugging Face `abisee/cnn_dailymail` 3.0.0 as CSV or JSON lines
    `train`, `validation` and `test` with the ending `.csv`, `.jsonl` or `.json` (also `.gz`) and columns
    `id`, `article` and `highlights`, the latter with one sentence on each line: 287,113, 13,368 and 11,490
    articles.
The original stories (https://cs.nyu.edu/~kcho/DMQA and https://github.com/abisee/cnn-dailymail)
    `cnn/stories/*.story` and `dailymail/stories/*.story` with `url_lists/all_train.txt`, `all_val.txt` and
    `all_test.txt`: 287,227, 13,368 and 11,490 URLs. A story's file name is the SHA-1 of its URL.

Articles are running text, so `--splitter` is `punctuation` (as in the paper) or `library`. 114 of the original
training stories have no article text; `--on-empty drop`, the default here, drops and counts them. The texts remain
the publishers'; the lists and scripts are under the Apache licence 2.0.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank
from release import count_other_release, read_table, release_folder, tables

DEFAULTS = {"splitter": "punctuation", "on_empty": "drop"}
RELEASE = {"train": (287113, 287227), "valid": (13368,), "test": (11490,)}
PAPER = {
    "documents": {"train": "287K", "valid": "13K", "test": "11K"},
    "source_words": "781",
    "source_tokens": "906",
    "target_words": "56",
    "target_tokens": "63",
}
COLUMNS = ("id", "article", "highlights")
URL_LISTS = {"train": "all_train.txt", "valid": "all_val.txt", "test": "all_test.txt"}
STORIES = "url_lists/ beside cnn/stories/ and dailymail/stories/, or "
HIGHLIGHT = "@highlight"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the articles of a split, highlights as targets."""
    folder = release_folder(root, f"{STORIES}the files of the Hugging Face release")
    if (folder / "url_lists").is_dir():
        count_other_release(tables(folder, split), counts)
        return _read_stories(folder, split)
    rows = read_table(folder, split, COLUMNS, counts, STORIES)
    return (
        Document(row["id"], text=row["article"], target=tuple(row["highlights"].split("\n")), origin=where)
        for where, row in rows
    )


def _read_stories(root: Path, split: str) -> Iterator[Document]:
    urls = root / "url_lists" / URL_LISTS[split]
    for number, url in read_lines(urls):
        story = f"{hashlib.sha1(url.strip().encode()).hexdigest()}.story"
        paths = [path for source in ("cnn", "dailymail") if (path := root / source / "stories" / story).is_file()]
        if not paths:
            raise ValueError(f"{urls}:{number}: {url} has no file cnn/stories/{story} or dailymail/stories/{story}")
        yield _read_story(paths[0])


def _read_story(path: Path) -> Document:
    """Read a story: paragraphs, with a blank line after each, then each highlight after a line `@highlight`."""
    lines = [line.strip() for _, line in read_lines(path) if not is_blank(line)]
    end = lines.index(HIGHLIGHT) if HIGHLIGHT in lines else len(lines)
    highlights = [line for line in lines[end:] if line != HIGHLIGHT]
    if not highlights:
        raise ValueError(f"{path}: no {HIGHLIGHT}, so this is no complete story")
    return Document(path.stem, text="\n\n".join(lines[:end]), target=tuple(highlights), origin=str(path))
