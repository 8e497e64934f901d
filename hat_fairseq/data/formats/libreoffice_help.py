"""LibreOffice's help in HTML: the same page has the same path in every language, the same paragraph the same id."""

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.formats.bitext import Side, pair
from hat_fairseq.data.record import Record

HELP = Path("usr", "share", "libreoffice", "help")
BLOCKS = frozenset({"p", "pre", "h", "h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass
class Block:
    """A paragraph or heading: its text, the class that its style sheet knows it by, and its lines."""

    text: str
    style: str
    first: int
    last: int = 0


class _Page(HTMLParser):
    """Collects the blocks of a page by id; an id that comes again in the page gets a number behind it.

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


def page_paths(root: Path, languages: tuple[str, str], counts: Counter[str]) -> list[str]:
    """The sorted paths, without folder and ending, of the pages in both languages; ValueError if one has none."""
    found: list[set[str]] = []
    for language in languages:
        folder = root / HELP / language / "text"
        found.append({path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html")})
        if not found[-1]:
            raise ValueError(f"{folder} has no pages (.html); unpack the package libreoffice-help-{language.lower()}")
    counts["pages_in_one_language_only"] += len(found[0] ^ found[1])
    return sorted(found[0] & found[1])


def read_page(root: Path, page: str, languages: tuple[str, str], counts: Counter[str]) -> Record:
    """The blocks of a page that are translated text; everything else is counted."""
    paths = [root / HELP / language / "text" / f"{page}.html" for language in languages]
    ours, theirs = map(_read_blocks, paths)
    counts["segments_in_one_language_only"] += len(ours.keys() ^ theirs.keys())
    sides = [Side(path, 1, page) for path in paths]
    for id_, block in ours.items():
        if id_ not in theirs:
            continue
        texts = [" ".join(one.text.split()) for one in (block, theirs[id_])]
        if reason := _why_not(texts, block.style):
            counts[reason] += 1
            continue
        for side, text, one in zip(sides, texts, (block, theirs[id_]), strict=True):
            side.first = min(side.first, one.first) if side.segments else one.first
            side.last = max(side.last, one.last)
            side.segments.append(text)
            side.keys.append(id_)
    origin = ", ".join(
        f"{language}/text/{page}.html:{side.first}-{side.last}" for language, side in zip(languages, sides, strict=True)
    )
    return replace(pair(sides[0], sides[1]), origin=origin)


def share(page: str, of: int) -> int:
    """A number below `of` that depends on the page's path alone."""
    return int.from_bytes(hashlib.sha256(page.encode()).digest()[:8]) % of


def _read_blocks(path: Path) -> dict[str, Block]:
    parser = _Page()
    for _, line in read_lines(path):
        parser.feed(line + "\n")
    parser.close()
    return parser.blocks


def _why_not(texts: list[str], style: str) -> str | None:
    if not all(texts):
        return "segments_empty_in_a_language"
    if "code" in style:
        return "segments_of_code"
    return "segments_equal_in_both_languages" if texts[0] == texts[1] else None
