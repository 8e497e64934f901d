"""LibreOffice's help, English-German, page by page: free text with whole documents, for demonstrations and tests.

A reader in a file of its own: `hat preprocess examples/libreoffice_help_en_de.py --root DIR --out DIR`, or the recipe
`libreoffice_help_en_de`. Not in the paper. `--root` is a folder where two packages of Debian were unpacked; nothing is
installed::

    apt-get download libreoffice-help-en-us libreoffice-help-de
    dpkg-deb -x libreoffice-help-en-us_*.deb root
    dpkg-deb -x libreoffice-help-de_*.deb root

so that it holds `usr/share/libreoffice/help/en-US/text` and `.../de/text` with the same `.html` pages. Known to
work: 4:7.4.7-1+deb12u14 (Debian 12), which gives 2,250, 75 and 148 pages with 49,012, 884 and 2,319 segments.
Licence: MPL-2.0, some parts Apache-2.0.

A paragraph or heading has the same id in every language, so the alignment is exact. Left out and counted: code,
paragraphs that are equal in both languages or empty in one, pages with fewer than two segments. A hash of a page's path
decides its split: 4 % are validation, 8 % are test. Pages repeat much ("Example:"), so segments of these two whose
English side also stands in the training part are left out there.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank

DEFAULTS = {
    "source_language": "en",
    "target_language": "de",
    "aligned": True,
    "target_separator": True,
    "on_misaligned": "error",  # the ids of the paragraphs leave nothing to doubt
}
LANGUAGES = ("en-US", "de")
PER_MILLE = {"valid": range(40), "test": range(40, 120)}
HELP = Path("usr", "share", "libreoffice", "help")
BLOCKS = frozenset({"p", "pre", "h", "h1", "h2", "h3", "h4", "h5", "h6"})


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Document]:
    """Yield the pages of a split."""
    if root is None:
        raise ValueError("--root DIR is required: the unpacked packages libreoffice-help-en-us and libreoffice-help-de")
    known = frozenset() if split == "train" else _training_sources(root)
    for page in page_paths(root, counts):
        if split != _split_of(page):
            continue
        document = read_page(root, page, counts)
        pairs = list(zip(document.elements or (), document.target or (), strict=True))
        new = [both for both in pairs if both[0] not in known]
        counts["segments_that_training_has_too"] += len(pairs) - len(new)
        if len(new) < 2:
            counts["pages_with_fewer_than_two_segments"] += 1
            continue
        yield document.with_sentences(tuple(one for one, _ in new), None, tuple(other for _, other in new))


@lru_cache(maxsize=1)
def _training_sources(root: Path) -> frozenset[str]:
    """Return the English segments of the training part, which is read once for the two other splits."""
    uncounted: Counter[str] = Counter()
    return frozenset(text for page in read("train", root, uncounted) for text in page.elements or ())


def _split_of(page: str) -> str:
    number = int.from_bytes(hashlib.sha256(page.encode()).digest()[:8]) % 1000
    return next((name for name, numbers in PER_MILLE.items() if number in numbers), "train")


def page_paths(root: Path, counts: Counter[str]) -> list[str]:
    """Return the sorted paths, without folder and ending, of the pages in both languages; ValueError for none."""
    pages: list[set[str]] = []
    for language in LANGUAGES:
        folder = root / HELP / language / "text"
        pages.append({path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html")})
        if not pages[-1]:
            raise ValueError(f"{folder} has no pages (.html); unpack the package libreoffice-help-{language.lower()}")
    counts["pages_in_one_language_only"] += len(pages[0] ^ pages[1])
    return sorted(pages[0] & pages[1])


def read_page(root: Path, page: str, counts: Counter[str]) -> Document:
    """Read the blocks of a page that are translated text; everything else is counted."""
    english, german = (_read_blocks(root / HELP / language / "text" / f"{page}.html") for language in LANGUAGES)
    counts["segments_in_one_language_only"] += len(english.keys() ^ german.keys())
    sides: tuple[list[Block], list[Block]] = [], []
    for id_ in english:
        if id_ not in german:
            continue
        if reason := _why_not(english[id_], german[id_]):
            counts[reason] += 1
            continue
        sides[0].append(english[id_])
        sides[1].append(german[id_])
    origin = ", ".join(
        f"{language}/text/{page}.html:{min(block.first for block in side)}-{max(block.last for block in side)}"
        for language, side in zip(LANGUAGES, sides, strict=True)
        if side
    )
    source, target = (tuple(block.text for block in side) for side in sides)
    return Document(page, sentences=source, target=target, origin=origin)


@dataclass
class Block:
    """A paragraph or heading: its text, the class that its style sheet knows it by, and its lines."""

    text: str
    style: str
    first: int
    last: int = 0


def _read_blocks(path: Path) -> dict[str, Block]:
    parser = _Page()
    for _, line in read_lines(path):
        parser.feed(line + "\n")
    parser.close()
    return {id_: replace(block, text=" ".join(block.text.split())) for id_, block in parser.blocks.items()}


def _why_not(source: Block, target: Block) -> str | None:
    if is_blank(source.text) or is_blank(target.text):
        return "segments_empty_in_a_language"
    if "code" in source.style:
        return "segments_of_code"
    return "segments_equal_in_both_languages" if source.text == target.text else None


class _Page(HTMLParser):
    """Collects the blocks of a page by id; an id that comes again in the page gets a number after it.

    A sentence may have alternatives for other systems or modules (`switchinline`: "Tools - Options", on macOS
    "LibreOffice - Preferences"). One is kept: the default, or else the first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[str, Block] = {}
        self.block: Block | None = None
        self.spans: list[str] = []  # the open ones in a block: "switch", in it "case", and other ones: ""
        self.cases: dict[str, str] = {}  # id of the alternative -> text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        id_ = values.get("id", "")
        if tag in BLOCKS:
            self.block, self.spans = None, []
            if id_:  # what has no id is the frame around the page, or a title taken from another page
                self.block = Block("", values.get("class", ""), self.getpos()[0])
                self.blocks[self._unused(id_)] = self.block
        elif tag == "span" and self.block is not None:
            self.spans.append(self._kind(values))
            if self.spans[-1] == "switch":
                self.cases = {}
            elif self.spans[-1] == "case":
                self.cases[id_] = ""
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "span" and self.spans:
            if self.spans.pop() == "switch" and self.block is not None and self.cases:
                default = next((id_ for id_ in self.cases if id_.startswith("default")), next(iter(self.cases)))
                self.block.text += self.cases[default]
        elif tag in BLOCKS and self.block is not None:
            self.block.last = self.getpos()[0]
            self.block = None

    def handle_data(self, data: str) -> None:
        if self.block is None:
            return
        if "case" in self.spans:
            self.cases[next(reversed(self.cases))] += data
        else:
            self.block.text += data

    def _kind(self, values: dict[str, str]) -> str:
        if self.spans and self.spans[-1] == "switch":
            return "case"
        return "switch" if values.get("class") == "switchinline" and "case" not in self.spans else ""

    def _unused(self, id_: str) -> str:
        number = 1
        while (name := id_ if number == 1 else f"{id_}#{number}") in self.blocks:
            number += 1
        return name
