"""XLIFF 2, the form of the Rapid corpus at WMT20.

`<file id=> <unit id=> <segment> <source xml:lang=> <target xml:lang=>`; each `<file>` is a document.
"""

from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.formats.bitext import Side
from hat_fairseq.data.formats.markup import Tag, scan

TAGS = ("file", "segment", "source", "target")


def read_sides(path: Path, languages: tuple[str, str]) -> Iterator[tuple[Side, Side]]:
    """Yield the documents of a file in the order of `languages`: that of `<source>` and that of `<target>`.

    A segment without `<target>` has the empty string there.

    Raises:
        ValueError: text in another language or outside of a file, a file without documents; with file and line.
    """
    sides: tuple[Side, Side] | None = None
    inside: Side | None = None
    found = 0
    for number, item in scan(path, TAGS):
        if isinstance(item, str):
            if inside is not None:
                inside.segments[-1] = f"{inside.segments[-1]} {item.strip()}".strip()
        elif item.name == "file":
            if item.closing:
                if sides is not None:
                    yield sides
                sides = None
                continue
            found += 1
            id_ = item.attributes.get("id", "")
            sides = Side(path, number, id_), Side(path, number, id_)
        elif sides is None:
            raise ValueError(f"{path}:{number}: <{item.name}> outside of <file>")
        elif item.name == "segment":
            if not item.closing:
                for side in sides:
                    side.segments.append("")
        else:
            inside = None if item.closing else _enter(sides, item, languages, f"{path}:{number}")
        for side in sides or ():
            side.last = number
    if not found:
        raise ValueError(f"{path}: no <file> in it, so this is no XLIFF corpus")


def _enter(sides: tuple[Side, Side], tag: Tag, languages: tuple[str, str], where: str) -> Side:
    index = ("source", "target").index(tag.name)
    language = tag.attributes.get("xml:lang", languages[index])
    if language.partition("-")[0].lower() != languages[index]:
        raise ValueError(f"{where}: <{tag.name}> is in {language!r} instead of {languages[index]!r}")
    if not sides[index].segments:
        raise ValueError(f"{where}: <{tag.name}> outside of <segment>")
    return sides[index]
