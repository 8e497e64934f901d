"""The `.sgm` files of the news test sets until WMT20, a language in each: `<refset> <doc docid=...> <seg id=...>`.

They resemble XML but are not well-formed. IWSLT's XML files have the same elements (`iwslt_xml`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hat_fairseq.data.formats.bitext import Side
from hat_fairseq.data.formats.markup import Tag, is_stray, scan

SETS = ("srcset", "refset", "tstset", "mteval")
TAGS = (*SETS, "doc", "hl", "p", "seg")


def read_sides(path: Path, described_by: Sequence[str] = (), id_element: str | None = None) -> Iterator[Side]:
    """Yield the documents of a file: `.sgm`, `.xml`, or such a file gzipped; ValueError with file and line.

    `described_by`: elements that describe a document; their text is no part of it. `id_element`: the one of them that
    holds the id which both languages share; None for the attribute `docid`.
    """
    found = 0
    for side in _documents(path, (*TAGS, *described_by), id_element):
        if not side.id:
            raise ValueError(f"{side.where}: a document without {id_element or 'docid'}")
        found += 1
        yield side
    if not found:
        raise ValueError(f"{path}: no <doc> in it, so this is no test set")


def _documents(path: Path, names: Sequence[str], id_element: str | None) -> Iterator[Side]:
    side: Side | None = None
    inside: str | None = None  # the element whose text comes next
    for number, item in scan(path, names):
        if isinstance(item, str):
            if side is not None:
                _add_text(side, inside, item, id_element, f"{path}:{number}")
        elif item.name == "doc" or item.name in SETS:
            if side is not None:
                yield side
            opens = item.name == "doc" and not item.closing
            side = Side(path, number, "" if id_element else item.attributes.get("docid", "")) if opens else None
            inside = None
        else:
            if item.name == "seg" and item.closing and inside != "seg":
                raise ValueError(f"{path}:{number}: </seg> without <seg>")
            inside = _enter(side, item, f"{path}:{number}")
        if side is not None:
            side.last = number
    if side is not None:
        yield side


def _enter(side: Side | None, tag: Tag, where: str) -> str | None:
    """The element that a tag opens; an unclosed one ends where the next begins."""
    if tag.closing or tag.name in ("p", "hl"):
        return None
    if tag.name == "seg":
        if side is None:
            raise ValueError(f"{where}: <seg> outside of <doc>")
        side.open_segment(tag.attributes.get("id", ""))
    return tag.name


def _add_text(side: Side, inside: str | None, text: str, id_element: str | None, where: str) -> None:
    if inside == "seg":
        side.add_text(text)
    elif inside is not None and inside == id_element:
        side.id = text.strip() or side.id
    elif inside is None and is_stray(text):
        raise ValueError(f"{where}: text outside of <seg>: {text.strip():.60}")
