"""The document type that all readers yield."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines

_KEYS = {"id", "text", "sentences", "turns", "target", "summary", "question", "meta"}
QUESTION = "question"  # the role of a question among turns
_TURN_KEYS = {"speaker", "role", "text"}


@dataclass(frozen=True)
class Document:
    """A source text, and for training and scoring its target.

    Args:
        id: names the document; not empty, without tabs and line breaks.
        text: running text, still to be split into sentences; or
        sentences: the sentences, segments or speaker turns of the source. Exactly one of the two is given.
        roles: one label for each of ``sentences``, or None.
        target: the reference, one string for each of its sentences, or None.
        question: what is asked about the source (query-focused summarization), or None; it becomes the first sentence.
        meta: anything else about the document, a JSON object; predictions carry it on.
        origin: where it comes from, for messages only: ``mine.jsonl:7``, or files and lines of both sides.

    Raises:
        ValueError: if any of this does not hold.
    """

    id: str
    text: str | None = None
    sentences: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    target: tuple[str, ...] | None = None
    question: str | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True, compare=False)
    origin: str | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not self.id.strip() or any(character in self.id for character in "\t\r\n"):
            raise ValueError(f"document id {self.id!r} is empty or contains a tab or a line break")
        if self.question is not None and not self.question.strip():
            raise ValueError(f"document {self.id!r} has an empty question")
        if (self.text is None) == (self.sentences is None):
            raise ValueError(f"document {self.id!r} needs either a text or sentences, and not both")
        if self.roles is not None and len(self.roles) != len(self.sentences or ()):
            raise ValueError(
                f"document {self.id!r} has {len(self.roles)} roles for {len(self.sentences or ())} sentences or turns"
            )

    @property
    def source(self) -> object:
        """What is read, to compare documents by."""
        return self.text or self.sentences, self.question

    @property
    def name(self) -> str:
        """For messages: the id, and the origin where it is known."""
        return f"document {self.id!r}" + (f" ({self.origin})" if self.origin else "")

    @classmethod
    def from_json(cls, record: Any, where: str) -> Document:
        """Build a document from a JSON object; ``where`` (file and line) is its origin, and opens every message.

        Keys: ``id``; one of ``text``, ``sentences`` (list of strings) and ``turns`` (list of objects with ``text``
        and, in all of them or in none, ``role`` or else ``speaker``); ``target`` or ``summary`` (list of sentences, or
        a string with one sentence on each line); ``question`` (string); ``meta`` (object).
        """
        try:
            return _from_json(record, where)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """The same document for ``from_json``."""
        record: dict[str, Any] = {"id": self.id}
        if self.text is not None:
            record["text"] = self.text
        elif self.roles is not None:
            turns = zip(self.roles, self.sentences or (), strict=True)
            record["turns"] = [{"role": role, "text": text} for role, text in turns]
        else:
            record["sentences"] = list(self.sentences or ())
        if self.target is not None:
            record["target"] = list(self.target)
        optional = {"question": self.question, "meta": self.meta}
        return record | {key: value for key, value in optional.items() if value is not None}


def read_documents(path: str | Path) -> Iterator[Document]:
    """Read a ``.jsonl`` or ``.jsonl.gz`` file, one document on each line.

    Raises:
        ValueError: invalid UTF-8 or JSON, an unknown key, a document id that occurs twice; with file and line.
    """
    line_of: dict[str, int] = {}
    for number, record in read_json_lines(path):
        where = f"{path}:{number}"
        document = Document.from_json(record, where)
        if document.id in line_of:
            raise ValueError(f"{where}: document id {document.id!r} was used before, in line {line_of[document.id]}")
        line_of[document.id] = number
        yield document


def _from_json(record: Any, origin: str) -> Document:
    if not isinstance(record, Mapping):
        raise ValueError(f"expected a JSON object, found {record!r:.60}")
    _refuse_unknown(record, _KEYS, "key")
    if "id" not in record:
        raise ValueError("the document has no id")
    if "target" in record and "summary" in record:
        raise ValueError("target and summary are two names for the same thing; give one of them")
    given = [key for key in ("text", "sentences", "turns") if key in record]
    if len(given) != 1:
        raise ValueError(f"give exactly one of text, sentences and turns, not {' and '.join(given) or 'none'}")
    sentences, roles = _sentences(record)
    return Document(
        id=_string(record["id"], "id"),
        text=_string(record["text"], "text") if "text" in record else None,
        sentences=sentences,
        roles=roles,
        target=_target(record.get("target", record.get("summary"))),
        question=_string(record["question"], "question") if "question" in record else None,
        meta=_object(record["meta"], "meta") if "meta" in record else None,
        origin=origin,
    )


def _sentences(record: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    if "sentences" in record:
        return _strings(record["sentences"], "sentences"), None
    if "turns" not in record:
        return None, None
    turns = record["turns"]
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) and "text" in turn for turn in turns):
        raise ValueError("turns must be a list of objects, each with a text")
    for turn in turns:
        _refuse_unknown(turn, _TURN_KEYS, "key of a turn")
    roles = [turn.get("role", turn.get("speaker")) for turn in turns]
    texts = _strings([turn["text"] for turn in turns], "text of a turn")
    if all(role is None for role in roles):
        return texts, None
    if None in roles:
        raise ValueError(f"turn {roles.index(None) + 1} has neither role nor speaker, but others have")
    return texts, _strings(roles, "role")


def _target(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(value.split("\n")) if isinstance(value, str) else _strings(value, "target")


def _refuse_unknown(record: Mapping[str, Any], known: set[str], what: str) -> None:
    unknown = sorted(record.keys() - known)
    if unknown:
        raise ValueError(f"unknown {what} {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a string, not {value!r:.60}")
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object, not {value!r:.60}")
    return value


def _strings(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list of strings, not {value!r:.60}")
    return tuple(_string(item, what) for item in value)
