"""Files of hypotheses and references: texts, labels or answers, joined by id."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from hat_fairseq.data.files import Fields, json_lines
from hat_fairseq.data.formats import PLAIN_TEXT, opened
from hat_fairseq.data.outputs import atomic_file
from hat_fairseq.data.text import is_blank

Summary = str | Sequence[str]  # a text, or its sentences
T = TypeVar("T")

HYPOTHESIS_KEYS = ("text",)
REFERENCE_KEYS = ("target", "summary")


def read_by_id(path: str | Path, parse: Callable[[Fields], T]) -> dict[str, T]:
    """Reads records: the result of `parse` for each, by its id; ValueError for no id, an id twice, or no records.

    An empty cell of a table is None.
    """
    with opened(Path(path)) as file:
        return _by_id((Fields(record, where) for where, record in file.rows(keep_empty=True)), path, parse)


def is_empty(fields: Fields) -> bool:
    """Tells whether a prediction is the row that `--on-empty keep` writes for a document without text."""
    return fields.record.get("empty") is True


def _by_id(rows: Iterable[Fields], path: str | Path, parse: Callable[[Fields], T]) -> dict[str, T]:
    results: dict[str, T] = {}
    for fields in rows:
        if fields.record.get("id") is None:
            raise fields.error(f"no 'id' among its keys {sorted(fields.record)!r:.80}")
        identifier = str(fields.record["id"])
        if identifier in results:
            raise fields.error(f"the id {identifier!r} for the second time")
        results[identifier] = parse(fields)
    if not results:
        raise ValueError(f"{path} is empty: nothing to score")
    return results


def check_joined(hypotheses: Collection[str], references: Collection[str], paths: tuple[str, str]) -> None:
    """Raises ValueError with the first id that only one of two files has."""
    for expected, present, path in ((references, hypotheses, paths[0]), (hypotheses, references, paths[1])):
        ids = set(present)
        if absent := [identifier for identifier in expected if identifier not in ids]:
            raise ValueError(f"{path} lacks {len(absent)} of {len(expected)} ids, the first is {absent[0]!r}")


def splits_beside(train: str, references: str) -> tuple[str, str]:
    """Returns the files that baselines are fitted to and chosen on: TRAIN of `--baselines`, and valid.jsonl beside it.

    Without TRAIN it is train.jsonl beside the references.
    """
    path = Path(train) if train else Path(references).with_name("train.jsonl")
    return str(path), str(path.with_name("valid.jsonl"))


@dataclass(frozen=True)
class DocumentTexts:
    """The texts of each document, in the order of a file; `ids` is None where the file has none."""

    path: str
    texts: list[list[Summary]]
    ids: list[str] | None
    is_plain: bool = False  # so that it can have no ids

    def name(self, index: int) -> str:
        """Returns what messages call the document at this index: its id, else its number, from 1."""
        return f"document {self.ids[index]!r}" if self.ids else f"document {index + 1}"


def read_texts(path: str | Path, keys: Sequence[str]) -> DocumentTexts:
    """Reads records (an id, and a text under the first present of `keys`), or plain text with a document a line.

    The end of its name says what a file is (`formats.py`); one of another name, such as `test.hypo`, is text. Without
    an id in the first record the file has no ids. Null is an empty text where no other key has one. A list of lists of
    strings is several texts of the document. ValueError with file and line.
    """
    path = str(path)
    with opened(Path(path), otherwise=PLAIN_TEXT) as file:
        if file.format == PLAIN_TEXT:
            return DocumentTexts(path, [[line] for _, line in file.lines()], None, is_plain=True)
        rows = (Fields(record, where) for where, record in file.rows(keep_empty=True))
        first = next(rows, None)
        every = chain([first] if first else [], rows)
        if first is None or first.record.get("id") is None:
            return DocumentTexts(path, [_texts(_without_id(fields, file.counts), keys) for fields in every], None)
        texts = _by_id(every, path, lambda fields: _texts(fields, keys))
        return DocumentTexts(path, list(texts.values()), list(texts))


def _without_id(fields: Fields, counts: Mapping[str, int]) -> Fields:
    if fields.record.get("id") is not None:
        raise fields.error("it has an id, and lines above have none: give all of them one, or none")
    if counts["blank_rows_skipped"]:
        raise fields.error('a row above is blank: give the rows ids, or write an empty text as ""')
    return fields


def _texts(fields: Fields, keys: Sequence[str]) -> list[Summary]:
    present = [key for key in keys if key in fields.record]
    if not present:
        raise fields.error(f"no {' or '.join(map(repr, keys))} among its keys {sorted(fields.record)}")
    key = next((key for key in present if fields.record[key] is not None), present[0])
    value = "" if fields.record[key] is None else fields.record[key]
    texts = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for text in texts:
        if not (isinstance(text, str) or (isinstance(text, list) and all(isinstance(item, str) for item in text))):
            raise fields.error(f"{key!r} must be a string or a list of strings, found {str(text)[:60]!r}")
    if len(texts) > 1 and keys != REFERENCE_KEYS:
        raise fields.error(f"{key!r} holds {len(texts)} texts; only references may be several")
    return texts


def read_references(paths: Sequence[str]) -> DocumentTexts:
    """Reads files of references, in the order of the first file's documents.

    Raises ValueError as `read_texts` and `pair` do, and for an empty reference, which no score is defined for.
    """
    first, *others = [read_texts(path, REFERENCE_KEYS) for path in paths]
    for file in (first, *others):
        for index, texts in enumerate(file.texts):
            if not texts or any(is_blank("".join(text)) for text in texts):
                name = file.name(index)
                raise ValueError(f"{file.path}: the reference of {name} is empty: take it out of all files")
    for other in others:
        for texts, added in zip(first.texts, pair(other, first), strict=True):
            texts += added
    return first


def read_hypotheses(path: str, references: DocumentTexts, keys: Sequence[str] = HYPOTHESIS_KEYS) -> list[Summary]:
    """Reads the text of each document, in the references' order; ValueError as `read_texts` and `pair`."""
    return [text for (text,) in pair(read_texts(path, keys), references)]


def pair(hypotheses: DocumentTexts, references: DocumentTexts) -> list[list[Summary]]:
    """Joins hypotheses and references, by id where both have ids, else by line; ValueError if they differ."""
    if hypotheses.ids is not None and references.ids is not None:
        check_joined(hypotheses.ids, references.ids, (hypotheses.path, references.path))
        texts = dict(zip(hypotheses.ids, hypotheses.texts, strict=True))
        return [texts[identifier] for identifier in references.ids]
    for one, other in ((hypotheses, references), (references, hypotheses)):
        if one.ids is None and other.ids is not None and not one.is_plain:
            raise ValueError(f'{one.path} has no ids, and {other.path} has: give each document its "id"')
    if (count := len(hypotheses.texts)) != len(references.texts):
        raise ValueError(f"{hypotheses.path} has {count} documents, but {references.path} has {len(references.texts)}")
    return hypotheses.texts


def write_summaries(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object a line; the file appears under its name only when complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.writelines(json_lines(rows))
