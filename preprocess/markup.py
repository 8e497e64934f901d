"""Tags and text of the markup that translation corpora are released in, whether it is valid XML or not.

The files of the shared tasks have one element on a line, attributes with or without quotes, names in upper or lower
case, unclosed elements and ampersands that stand for themselves. A parser of XML refuses them, one of HTML guesses.
Here only the names that a format knows are tags, and everything else is text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.text import is_blank, unescape

_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s>"']+)"""
_ATTRIBUTES = re.compile(rf"\s+([\w:.-]+)\s*=\s*({_VALUE})")


@dataclass(frozen=True)
class Tag:
    """`<name key="value">`, or `</name>` if `closing`; names in lower case."""

    name: str
    closing: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def scan(path: Path, names: Sequence[str]) -> Iterator[tuple[int, Tag | str]]:
    """Yield the tags with one of `names` and the text between them, each with its line number.

    Character references are resolved, line by line. `<seg/>` gives an opening and a closing tag. ValueError as
    `read_lines`, and for a tag of these names that cannot be read, or does not end on its line.
    """
    any_of = "|".join(names)
    begin = re.compile(rf"<(?=/?(?:{any_of})(?![\w.:-]))", re.IGNORECASE)
    tag = re.compile(rf"<(/?)({any_of})((?:\s+[\w:.-]+\s*=\s*{_VALUE})*)\s*(/?)>", re.IGNORECASE)
    for number, line in read_lines(path):
        done = 0
        while (start := begin.search(line, done)) is not None:
            match = tag.match(line, start.start())
            if match is None:
                raise ValueError(f"{path}:{number}: cannot read the tag {line[start.start() :]:.60}")
            if text := line[done : match.start()].removesuffix("\r"):
                yield number, unescape(text)
            name = match[2].lower()
            yield number, Tag(name, bool(match[1]), _values(match[3]))
            if match[4]:
                yield number, Tag(name, closing=True)
            done = match.end()
        if text := line[done:].removesuffix("\r"):
            yield number, unescape(text)


def is_stray(text: str) -> bool:
    """Return whether text between known tags shows something other than an element of an unknown name."""
    return not is_blank(text) and not re.fullmatch(r"<.*>", text.strip())


def _values(attributes: str) -> dict[str, str]:
    pairs = _ATTRIBUTES.findall(attributes)
    return {name.lower(): unescape(value[1:-1] if value[0] in "\"'" else value) for name, value in pairs}
