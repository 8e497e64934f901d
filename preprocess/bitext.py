"""The two sides of a parallel document, how they become one, and test sets of the news task, which resemble XML.

Until WMT20 (`.sgm`): `<refset> <doc docid=...> <seg id=...>`, not well-formed. IWSLT's files have the same elements and
others that describe a document.
Since 2021 (wmt-format-tools): `<dataset> <collection>? <doc id= origlang=>`, in it `<src lang=>`,
`<ref lang= translator=>*` and `<hyp lang= system=>*`, each side with `<p>` and `<seg id=>`. Test sets of earlier years
were released again in this form.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hat_fairseq.data.kinds import Document
from markup import Tag, is_stray, scan

SETS = ("srcset", "refset", "tstset", "mteval", "dataset", "collection")
TAGS = (*SETS, "doc", "hl", "p", "seg")
SIDES = ("src", "ref", "hyp")


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
        """Return file and line for messages about the beginning of the document."""
        return f"{self.path}:{self.first}"

    def open_segment(self, key: str = "") -> None:
        """Begin a segment with this id."""
        self.segments.append("")
        self.keys.append(key)

    def add_text(self, text: str) -> None:
        """Go on with the last segment."""
        self.segments[-1] = f"{self.segments[-1]} {text.strip()}".strip()


def pair(source: Side, target: Side, id_: str | None = None, others: Sequence[Side] = ()) -> Document:
    """Make one document of two sides, and of `others`, which are further references.

    Segments are paired by their ids, with an empty one where a side lacks an id; by position where a side has no ids.
    ValueError for sides that share no id, and for equally many segments with different ids, one of them twice.
    """
    sides = (source, target, *others)
    keys = _keys_of_all(sides) if all(map(_has_ids, sides)) else []
    if keys and not set(source.keys) & set(target.keys):
        raise _other_segment(source, target)
    are_named = any(source.keys) and any(target.keys)
    if not keys and are_named and len(source.keys) == len(target.keys) and source.keys != target.keys:
        raise _other_segment(source, target)
    texts = [dict(zip(side.keys, side.segments, strict=True)) if keys else {} for side in sides]
    segments = [
        tuple(text.get(key, "") for key in keys) or tuple(side.segments)
        for side, text in zip(sides, texts, strict=True)
    ]
    return Document(
        id=source.id if id_ is None else id_,
        sentences=segments[0],
        target=segments[1],
        other_references=tuple(segments[2:]),
        origin=", ".join(f"{side.path.name}:{side.first}-{side.last}" for side in (source, target)),
    )


def _has_ids(side: Side) -> bool:
    return bool(side.keys) and all(side.keys) and len(set(side.keys)) == len(side.keys)


def _keys_of_all(sides: Iterable[Side]) -> list[str]:
    """List the ids of all segments in the order of the first side; one that it lacks is after the one before it."""
    keys: list[str] = []
    for side in sides:
        for number, key in enumerate(side.keys):
            if key not in keys:
                keys.insert(keys.index(side.keys[number - 1]) + 1 if number else 0, key)
    return keys


def _other_segment(source: Side, target: Side) -> ValueError:
    key, other = next(keys for keys in zip(source.keys, target.keys, strict=False) if keys[0] != keys[1])
    return ValueError(
        f"{source.where}: document {source.id!r} has the segment {key!r} where {target.where} has {other!r}; the two "
        "files do not belong together"
    )


def join(
    sources: Iterable[Side], targets: Iterable[Side], counts: Counter[str], prefix: str = ""
) -> Iterator[Document]:
    """Join two files by document id, in the order of the first; those in one file only are left out and counted.

    ValueError for an id twice, and for files that share no document.
    """
    first, second = _by_id(sources), _by_id(targets)
    lonely = [side for id_, side in first.items() if id_ not in second]
    if len(lonely) == len(first):
        other = next(iter(second.values())).path if second else "the other file"
        raise ValueError(
            f"{lonely[0].where}: document {lonely[0].id!r} is not in {other}, and neither is any other of the "
            f"{len(first)} documents; fetch both files of the same release"
        )
    counts["documents_without_source_left_out"] += len(second.keys() - first.keys())
    counts["documents_without_reference_left_out"] += len(lonely)
    for id_, source in first.items():
        if id_ in second:
            yield pair(source, second[id_], prefix + id_)


def _by_id(sides: Iterable[Side]) -> dict[str, Side]:
    documents: dict[str, Side] = {}
    for side in sides:
        if side.id in documents:
            raise ValueError(f"{side.where}: document {side.id!r} was there before, in line {documents[side.id].first}")
        documents[side.id] = side
    return documents


@dataclass
class TaggedDocument:
    """A document: its tag, its place, its sides with the tag of each, and the texts of the elements describing it."""

    tag: Tag
    where: str
    sides: list[tuple[Tag, Side]] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)

    def sides_in(self, language: str, name: str) -> list[Side]:
        """Return the sides with segments of an element in a language: `en` is also `en-US`, one without `lang` any."""
        return [
            side
            for tag, side in self.sides
            if side.segments and tag.name == name and tag.attributes.get("lang", language).partition("-")[0] == language
        ]


def read_sides(path: Path, described_by: Sequence[str] = (), id_element: str | None = None) -> Iterator[Side]:
    """Yield the documents of a file with one language: `.sgm`, `.xml`, or gzipped; ValueError with file and line.

    `described_by`: elements that describe a document; their text is no part of it. `id_element`: the one of them that
    holds the id which both languages share; None for the attribute `docid`.
    """
    document: TaggedDocument | None = None
    for document in _documents(path, ("doc",), described_by):
        ((_, side),) = document.sides
        side.id = (document.descriptions if id_element else document.tag.attributes).get(id_element or "docid", "")
        if not side.id:
            raise ValueError(f"{side.where}: a document without {id_element or 'docid'}")
        yield side
    if document is None:
        raise ValueError(f"{path}: no <doc> in it, so this is no test set")


def read_test_set(path: Path, source_language: str, target_language: str, counts: Counter[str]) -> Iterator[Document]:
    """Yield the documents of a file with all languages, with all their references in `target_language`.

    Documents of test suites, and those without source or reference, are left out and counted. ValueError with file and
    line for a document without id, an id twice, text outside of a segment, a file without documents to translate.
    """
    seen: dict[str, str] = {}
    lonely, pairs = "", 0
    for document in _documents(path, SIDES):
        id_ = document.tag.attributes.get("id", "")
        if document.tag.attributes.get("testsuite"):
            counts["documents_of_test_suites_left_out"] += 1
            continue
        if not id_:
            raise ValueError(f"{document.where}: a document without id")
        if id_ in seen:
            raise ValueError(f"{document.where}: document {id_!r} was there before, at {seen[id_]}")
        seen[id_] = document.where
        sources, targets = document.sides_in(source_language, "src"), document.sides_in(target_language, "ref")
        if not sources or not targets:
            missing = f"<ref lang={target_language}>" if sources else f"<src lang={source_language}>"
            counts[f"documents_without_{'reference' if sources else 'source'}_left_out"] += 1
            lonely = lonely or f"{document.where}: document {id_!r} has no {missing}"
            continue
        sources[0].id = id_
        pairs += 1
        yield pair(sources[0], targets[0], others=targets[1:])
    if not seen:
        raise ValueError(f"{path}: no <doc> in it, so this is no test set")
    if not pairs:
        raise ValueError(f"{lonely}, and no other has both")


def _documents(path: Path, side_names: Sequence[str], described_by: Sequence[str] = ()) -> Iterator[TaggedDocument]:
    """Yield the documents of a file; an unclosed element ends where the next begins.

    `side_names`: the elements with the segments of one language.
    """
    document: TaggedDocument | None = None
    side: Side | None = None
    inside = ""  # the element whose text comes next: a segment or a description
    for number, item in scan(path, (*TAGS, *side_names, *described_by)):
        where = f"{path}:{number}"
        if isinstance(item, str):
            _add_text(document, side, inside, item, where)
            continue
        if item.name in (*SETS, "doc"):
            if document is not None:
                yield document
            document, side = TaggedDocument(item, where) if item.name == "doc" and not item.closing else None, None
        if item.name in side_names:
            side = Side(path, number) if document is not None and not item.closing else None
            if document is not None and side is not None:
                document.sides.append((item, side))
        elif item.name == "seg":
            _open_or_close_segment(side, item, inside, where)
        inside = item.name if item.name in ("seg", *described_by) and not item.closing else ""
        if side is not None:
            side.last = number
    if inside == "seg":
        raise ValueError(f"{path}: the last <seg> is not closed; is the file cut off?")
    if document is not None:
        yield document


def _open_or_close_segment(side: Side | None, tag: Tag, inside: str, where: str) -> None:
    if tag.closing and inside != "seg":
        raise ValueError(f"{where}: </seg> without <seg>")
    if not tag.closing:
        if side is None:
            raise ValueError(f"{where}: <seg> outside of the text of a document")
        side.open_segment(tag.attributes.get("id", ""))


def _add_text(document: TaggedDocument | None, side: Side | None, inside: str, text: str, where: str) -> None:
    if inside == "seg" and side is not None:
        side.add_text(text)
    elif document is not None and inside:
        document.descriptions[inside] = text.strip() or document.descriptions.get(inside, "")
    elif document is not None and is_stray(text):
        raise ValueError(f"{where}: text outside of <seg>: {text.strip():.60}")
