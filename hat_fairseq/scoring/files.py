"""Files of hypotheses and references: texts, labels or answers, joined by id."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hat_fairseq.data.files import read_json_lines, read_lines
from hat_fairseq.data.outputs import atomic_file
from hat_fairseq.scoring.rouge import Summary

HYPOTHESIS_KEYS = ("text",)
REFERENCE_KEYS = ("target", "summary")

T = TypeVar("T")


def is_lines(path: str | Path) -> bool:
    """Whether the file's name says that it has a JSON object on each line."""
    return str(path).endswith((".jsonl", ".jsonl.gz"))


def json_lines(path: str | Path) -> Iterable[tuple[str, dict[str, Any]]]:
    """Each record of a file with its place, `file:line`."""
    return ((f"{path}:{number}", record) for number, record in read_json_lines(path))


def by_id(
    path: str | Path, records: Iterable[tuple[str, Mapping[str, Any]]], parse: Callable[[Mapping[str, Any], str], T]
) -> dict[str, T]:
    """The result of `parse(record, place)` for each id; ValueError for no id, an id twice, or no records."""
    found: dict[str, T] = {}
    for where, record in records:
        identifier = record.get("id")
        if not isinstance(identifier, str):
            raise ValueError(f"{where}: no 'id' among its keys {sorted(record)}, or it is no string")
        if identifier in found:
            raise ValueError(f"{where}: the id {identifier!r} for the second time")
        found[identifier] = parse(record, where)
    if not found:
        raise ValueError(f"{path} is empty: nothing to score")
    return found


def check_joined(hypotheses: Collection[T], references: Collection[T], paths: tuple[str, str]) -> None:
    """Raises ValueError with the first id that only one of two files has."""
    for wanted, present, path in ((references, hypotheses, paths[0]), (hypotheses, references, paths[1])):
        known = set(present)
        absent = [identifier for identifier in wanted if identifier not in known]
        if absent:
            raise ValueError(f"{path} lacks {len(absent)} of {len(wanted)} ids, the first is {absent[0]!r}")


@dataclass(frozen=True)
class DocumentTexts:
    """The texts of each document, in the order of a file; `ids` is None where the file has none."""

    path: str
    texts: list[list[Summary]]
    ids: list[str] | None


def read_texts(path: str | Path, keys: Sequence[str]) -> DocumentTexts:
    """Reads JSON lines (an id, and a text under the first present of `keys`), or plain text with a document a line.

    Ids that are no strings count as their text. Either all lines have an id, or none. A list of lists of strings is
    several texts of the document. ValueError with file and line.
    """
    if not is_lines(path):
        return DocumentTexts(str(path), [[line] for _, line in read_lines(path)], None)
    rows = [(where, record.get("id"), _texts(record, where, keys)) for where, record in json_lines(path)]
    numbered = [(where, {"id": str(identifier)}) for where, identifier, _ in rows if identifier is not None]
    if numbered and len(numbered) != len(rows):
        raise ValueError(f"{path}: {len(numbered)} of {len(rows)} lines have an id: give all of them one, or none")
    ids = list(by_id(path, numbered, lambda record, where: None)) if numbered else None
    return DocumentTexts(str(path), [texts for *_, texts in rows], ids)


def _texts(record: Mapping[str, Any], where: str, keys: Sequence[str]) -> list[Summary]:
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        raise ValueError(f"{where}: no {' or '.join(map(repr, keys))} among its keys {sorted(record)}")
    value = record[key]
    texts = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for text in texts:
        if not (isinstance(text, str) or (isinstance(text, list) and all(isinstance(item, str) for item in text))):
            raise ValueError(f"{where}: {key!r} must be a string or a list of strings, found {str(text)[:60]!r}")
    if len(texts) > 1 and keys != REFERENCE_KEYS:
        raise ValueError(f"{where}: {key!r} holds {len(texts)} texts; only references may be several")
    return texts


def read_references(paths: Sequence[str]) -> DocumentTexts:
    """Reads files of references, in the order of the first file's documents; ValueError as `read_texts` and `pair`."""
    first, *others = [read_texts(path, REFERENCE_KEYS) for path in paths]
    for other in others:
        for texts, added in zip(first.texts, pair(other, first), strict=True):
            texts += added
    return first


def read_hypotheses(path: str, references: DocumentTexts, keys: Sequence[str] = HYPOTHESIS_KEYS) -> list[Summary]:
    """Reads the text of each document, in the references' order; ValueError as `read_texts` and `pair`."""
    return [text for (text,) in pair(read_texts(path, keys), references)]


def pair(hypotheses: DocumentTexts, references: DocumentTexts) -> list[list[Summary]]:
    """The hypotheses in the references' order: by id where both have ids, else by line; ValueError if they differ."""
    if hypotheses.ids is None or references.ids is None:
        for ours, other in ((hypotheses, references), (references, hypotheses)):
            if ours.ids is None and other.ids is not None and is_lines(ours.path):
                raise ValueError(f'{ours.path} has no ids, and {other.path} has: give each line its "id"')
        if len(hypotheses.texts) != len(references.texts):
            found, wanted = len(hypotheses.texts), len(references.texts)
            raise ValueError(f"{hypotheses.path} has {found} documents, but {references.path} has {wanted}")
        return hypotheses.texts
    check_joined(hypotheses.ids, references.ids, (hypotheses.path, references.path))
    texts = dict(zip(hypotheses.ids, hypotheses.texts, strict=True))
    return [texts[identifier] for identifier in references.ids]


def write_summaries(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object a line; the file appears under its name only when complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
