"""The XML files of the news task since 2021 (wmt-format-tools), all languages in one.

`<dataset> <collection>? <doc id= origlang=> <src lang=> <ref lang= translator=>* <hyp lang= system=>*`, each side
with `<p>` and `<seg id=>`. Test sets of earlier years were released again in this form.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hat_fairseq.data.formats.bitext import Side, pair
from hat_fairseq.data.formats.markup import Tag, is_stray, scan
from hat_fairseq.data.record import Record

SIDES = ("src", "ref", "hyp")
TAGS = ("dataset", "collection", "doc", "p", "seg", *SIDES)


@dataclass
class _Doc:
    tag: Tag
    where: str
    sides: list[tuple[Tag, Side]] = field(default_factory=list)

    def find(self, name: str, language: str) -> list[Side]:
        """The sides of a kind in a language: `en` is also `en-US`, and one without `lang` is in any."""
        return [
            side
            for tag, side in self.sides
            if tag.name == name and tag.attributes.get("lang", language).partition("-")[0] == language
        ]


def read(path: Path, source_language: str, target_language: str, counts: Counter[str]) -> Iterator[Record]:
    """Yield the documents of a file with their first reference in `target_language`.

    Further references and the documents of test suites are left out and counted. ValueError with file and line for a
    document without id, source or reference, an id twice, text outside of a segment, a file without documents.
    """
    seen: dict[str, str] = {}
    for doc in _documents(path):
        id_ = doc.tag.attributes.get("id", "")
        if doc.tag.attributes.get("testsuite"):
            counts["documents_of_test_suites_left_out"] += 1
            continue
        if not id_:
            raise ValueError(f"{doc.where}: a document without id")
        if id_ in seen:
            raise ValueError(f"{doc.where}: document {id_!r} was there before, at {seen[id_]}")
        seen[id_] = doc.where
        sources, targets = doc.find("src", source_language), doc.find("ref", target_language)
        if not sources or not targets:
            missing = f"<ref lang={target_language}>" if sources else f"<src lang={source_language}>"
            raise ValueError(f"{doc.where}: document {id_!r} has no {missing}")
        counts["further_references_left_out"] += len(targets) - 1
        yield pair(sources[0], targets[0])
    if not seen:
        raise ValueError(f"{path}: no <doc> in it, so this is no test set")


def _documents(path: Path) -> Iterator[_Doc]:
    doc: _Doc | None = None
    side: Side | None = None
    in_segment = False
    for number, item in scan(path, TAGS):
        if isinstance(item, str):
            if side is not None and in_segment:
                side.add_text(item)
                side.last = number
            elif doc is not None and is_stray(item):
                raise ValueError(f"{path}:{number}: text outside of <seg>: {item.strip():.60}")
            continue
        in_segment = item.name == "seg" and not item.closing
        if item.name == "doc":
            if doc is not None:
                yield doc
            doc, side = (None if item.closing else _Doc(item, f"{path}:{number}")), None
        elif item.name in SIDES:
            side = None
            if doc is not None and not item.closing:
                side = Side(path, number, doc.tag.attributes.get("id", ""))
                doc.sides.append((item, side))
        elif in_segment:
            if side is None:
                raise ValueError(f"{path}:{number}: <seg> outside of <src>, <ref> and <hyp>")
            side.open_segment(item.attributes.get("id", ""))
        if side is not None:
            side.last = number
    if doc is not None:
        yield doc
