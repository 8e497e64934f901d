"""XSum: BBC articles, the first sentence is the summary (Narayan et al. 2018).

`--root` is a folder with one of the two common releases, 204,045, 11,332 and 11,334 articles:

EdinburghNLP (https://github.com/EdinburghNLP/XSum; the archive lies at http://bollin.inf.ed.ac.uk/public/direct/)
    `bbc-summary-data/*.summary` out of XSUM-EMNLP18-Summary-Data-Original.tar.gz (254,582,292 bytes, SHA-256
    10b48aa187fc9c904b30f76ca97e2da0de8d3a1238acc26acadef93e2001af90) beside XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json
    (SHA-256 9c0c5d8f048a90bd68b19a34e4c30577ed270d3247b2119fa06a04ef46292068).
Hugging Face `EdinburghNLP/xsum` as CSV or JSON lines
    `train`, `validation` and `test` with the ending `.csv`, `.jsonl` or `.json` (also `.gz`) and columns
    `document`, `summary` and `id`.

The `.summary` files still have the buttons of the web page (`BUTTONS`), which the Hugging Face release has not:
such lines are removed and counted, so that both give the same articles. Articles are running text, so `--splitter` is
`punctuation` (as in the paper) or `library`. The texts remain the BBC's.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields, read_lines
from hat_fairseq.data.kinds import Document
from release import count_other_release, read_table, release_file, release_folder, tables

DEFAULTS = {"splitter": "punctuation", "on_empty": "drop"}
RELEASE = {"train": (204045,), "valid": (11332,), "test": (11334,)}
PAPER = {
    "documents": {"train": "204K", "valid": "11K", "test": "11K"},
    "source_words": "431",
    "source_tokens": "488",
    "target_words": "23",
    "target_tokens": "27",
}
COLUMNS = ("document", "summary", "id")
SPLIT_FILE = "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json"
NAMES = {"train": "train", "valid": "validation", "test": "test"}
SUMMARIES = f"bbc-summary-data/ beside {SPLIT_FILE}, or "
PART = re.compile(r"\[SN\]([A-Z-]+)\[SN\]")
PARTS = ("URL", "TITLE", "FIRST-SENTENCE", "RESTBODY")
BUTTONS = frozenset(
    ["Share this with", "Email", "Facebook", "Messenger", "Twitter", "Pinterest", "WhatsApp", "Linkedin", "LinkedIn"]
    + ["Copy this link", "These are external links and will open in a new window"]
)


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the articles of a split, first sentences as targets."""
    folder = release_folder(root, f"{SUMMARIES}the files of the Hugging Face release")
    if (folder / "bbc-summary-data").is_dir():
        count_other_release(tables(folder, split), counts)
        return (_article(folder / "bbc-summary-data", name, counts) for name in _names(folder / SPLIT_FILE, split))
    rows = read_table(folder, split, COLUMNS, counts, SUMMARIES)
    return (
        Document(row["id"], text=row["document"], target=tuple(row["summary"].split("\n")), origin=where)
        for where, row in rows
    )


def _names(path: Path, split: str) -> list[str]:
    release_file(path, SUMMARIES.removesuffix(", or "))
    return [str(name) for name in Fields.read(path, NAMES.values()).items(NAMES[split], str)]


def _article(folder: Path, name: str, counts: Counter[str]) -> Document:
    """Read an article, whose parts follow lines such as `[SN]TITLE[SN]`."""
    path = folder / f"{name}.summary"
    if not path.is_file():
        raise ValueError(f"{path} is missing, which {SPLIT_FILE} lists; unpack the archive again")
    parts: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for _, line in read_lines(path):
        if part := PART.fullmatch(line.strip()):
            lines = parts.setdefault(part[1], []) if part[1] in PARTS else None
        elif line.strip() in BUTTONS:
            counts["page_buttons_removed"] += 1
        elif lines is not None:
            lines.append(line)
        elif line.strip():
            counts["lines_outside_of_the_parts_skipped"] += 1
    missing = [part for part in ("FIRST-SENTENCE", "RESTBODY") if part not in parts]
    if missing:
        raise ValueError(f"{path}: no [SN]{missing[0]}[SN], so this is no complete article; unpack the archive again")
    text, target = ("\n".join(parts[part]).strip() for part in ("RESTBODY", "FIRST-SENTENCE"))
    return Document(name, text=text, target=(target,), origin=str(path))
