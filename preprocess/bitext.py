"""The two sides of a parallel document, and how they become one document."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hat_fairseq.data.kinds import Document


@dataclass
class Side:
    """A document in one language."""

    path: Path  # the file it stands in
    first: int  # number of its first line in the file, from 1
    id: str = ""  # what joins it to the other language
    last: int = 0  # number of its last line
    segments: list[str] = field(default_factory=list)  # its text, also empty strings
    keys: list[str] = field(default_factory=list)  # the ids of the segments, where the format has any

    @property
    def where(self) -> str:
        """File and line for messages about the beginning of the document."""
        return f"{self.path}:{self.first}"

    def open_segment(self, key: str = "") -> None:
        """Begin a segment with this id."""
        self.segments.append("")
        self.keys.append(key)

    def add_text(self, text: str) -> None:
        """Go on with the last segment."""
        self.segments[-1] = f"{self.segments[-1]} {text.strip()}".strip()


def pair(source: Side, target: Side, id_: str | None = None) -> Document:
    """Make one document of two sides; ValueError for equally many segments with different ids, no translations."""
    if len(source.keys) == len(target.keys):
        for key, other in zip(source.keys, target.keys, strict=True):
            if key != other:
                raise ValueError(
                    f"{source.where}: document {source.id!r} has the segment {key!r} where {target.where} has "
                    f"{other!r}; the two files do not belong together"
                )
    return Document(
        id=source.id if id_ is None else id_,
        sentences=tuple(source.segments),
        target=tuple(target.segments),
        origin=", ".join(f"{side.path.name}:{side.first}-{side.last}" for side in (source, target)),
    )


def join(sources: Iterable[Side], targets: Iterable[Side], prefix: str = "") -> Iterator[Document]:
    """Join two files by document id, in the order of the first; ValueError for an id twice, or in one file only."""
    first, second = _by_id(sources), _by_id(targets)
    for sides, others in ((first, second), (second, first)):
        lonely = [side for id_, side in sides.items() if id_ not in others]
        if lonely:
            other = next(iter(others.values())).path if others else "the other file"
            raise ValueError(
                f"{lonely[0].where}: document {lonely[0].id!r} is not in {other} ({len(lonely)} of {len(sides)} "
                f"documents are missing there, which has {len(others)}); fetch both files of the same release"
            )
    for id_, source in first.items():
        yield pair(source, second[id_], prefix + id_)


def _by_id(sides: Iterable[Side]) -> dict[str, Side]:
    documents: dict[str, Side] = {}
    for side in sides:
        if side.id in documents:
            raise ValueError(f"{side.where}: document {side.id!r} was there before, in line {documents[side.id].first}")
        documents[side.id] = side
    return documents
