"""Records as JSON objects, and back: what users write, and what `text/SPLIT.jsonl` holds.

Which keys an object may have depends on its kind (`kinds.py`); what a key means does not:

    id                                     a string; in files for pre-training it may be missing
    text, sentences, segments, words       running text, or a list; exactly one of them is given
    paragraphs                             or a list of paragraphs
    tokens, pixels                         or the symbols of a sequence: strings, or numbers from 0 to 255
    turns                                  or a list of objects with text and, in all or in none, role or else speaker
    question                               a text that goes before
    second                                 a second text or list
    choices, label                         continuations, and the number of the right one
    candidates, label                      the same for answers to a question
    label, labels, answers, target         the gold label or target; answers are objects with text and start
    annotations                            likewise; objects with paragraph, spans (as answers) and yes_no, or empty
    meta                                   an object that predictions carry on
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, is_deeper, read_json_lines
from hat_fairseq.data.kinds import DIVIDED, Kind, kind_of
from hat_fairseq.data.record import Annotation, Answer, Record, Text, is_unicode
from hat_fairseq.data.tables import is_table, read_rows

DEEPEST_META = 100  # levels; others that read the predictions have limits, too
_FORMS = ("text", *DIVIDED, "turns")


def read_records(path: str | Path, kind: str | Kind = "text", shown_as: str | None = None) -> Iterator[Record]:
    """Read the records of a kind: JSON lines, one on each, or the rows of a table (`tables.py`).

    `shown_as`: what messages call the file; None for its path. ValueError with file and line as
    `files.read_json_lines`, and for an unknown key, an id twice, or what `Record` refuses.
    """
    kind, path = kind_of(kind), Path(path)
    line_of: dict[str, int] = {}
    rows = read_rows(path) if is_table(path) else ((f"{shown_as or path}:{n}", o) for n, o in read_json_lines(path))
    for number, (where, fields) in enumerate(rows, start=1):
        record = record_from_json(fields, where, kind)
        if record.id in line_of:
            raise ValueError(f"{where}: document id {record.id!r} was used before, in line {line_of[record.id]}")
        line_of[record.id] = number
        yield record


def record_from_json(record: Any, where: str, kind: str | Kind = "text") -> Record:
    """A record of a JSON object; `where` (file and line) opens every message of a ValueError, and is its origin."""
    kind = kind_of(kind)
    if kind.packs and isinstance(record, dict):  # ids may be missing
        record = {"id": Path(where).name, **record}
    fields = Fields(record, where, {"id", "meta", *kind.keys})
    parts, roles = _parts(fields, kind)
    choices = _choices(fields)
    if "question" in fields and "choices" not in fields:
        parts = (fields.text("question"), *parts)
    if "target" in fields and "summary" in fields:
        raise fields.error("target and summary are two names for the same thing; give one of them")
    gold: dict[str, Any] = {
        "target": _target(fields, "summary" if "summary" in fields else "target"),
        "label": _label(fields, record["label"], bool(choices)) if "label" in fields else None,
        "labels": tuple(_label(fields, label) for label in fields.get("labels", list)) if "labels" in fields else None,
        "answers": _answers(fields, "answers") if "answers" in fields else None,
        "annotations": _annotations(fields) if "annotations" in fields else None,
    }
    meta = _meta(fields) if "meta" in fields else None
    try:
        built = Record(fields.text("id"), parts, choices, roles=roles, meta=meta, **gold)
        kind.check(built)
    except ValueError as error:
        raise error if str(error).startswith(where) else fields.error(str(error)) from error
    return replace(built, origin=where)  # not before: the messages above have it already


def record_to_json(record: Record, kind: str | Kind = "text") -> dict[str, Any]:
    """The object from which `record_from_json` makes the same record."""
    kind = kind_of(kind)
    fields: dict[str, Any] = {"id": record.id}
    main: Text = record.parts[0]
    if "question" in kind.keys and len(record.parts) == 2:
        fields["question"], main = record.parts
    elif len(record.parts) == 2:
        fields["second"] = record.parts[1]
    if record.roles is not None:
        fields["turns"] = [{"role": r, "text": t} for r, t in zip(record.roles, main, strict=True)]
    else:
        key = "text" if isinstance(main, str) else kind.divided_key
        fields[key] = list(map(int, main)) if key == "pixels" else main
    if record.choices:
        fields[kind.choices_key or "choices"] = record.choices
    if record.label is not None:
        fields["label"] = int(record.label) if record.choices else record.label
    if record.answers is not None:
        fields["answers"] = list(map(asdict, record.answers))
    if record.annotations is not None:
        fields["annotations"] = [_annotation_to_json(annotation) for annotation in record.annotations]
    optional = {"labels": record.labels, "target": record.target, "meta": record.meta}
    return fields | {key: value for key, value in optional.items() if value is not None}


def json_line(record: Record, kind: Kind) -> str:
    """The record as a line of a JSON lines file."""
    line = json.dumps(record_to_json(record, kind), ensure_ascii=False)
    # A text as given may hold lone surrogates, which UTF-8 cannot represent.
    return line if is_unicode(line) else json.dumps(record_to_json(record, kind))


def with_meta(rows: list[dict[str, Any]], path: Path, kind: str = "text") -> list[dict[str, Any]]:
    """Predictions with the `meta` of their records, where there is such a file and they have one."""
    if not path.is_file():
        return rows
    meta = {record.id: record.meta for record in read_records(path, kind) if record.meta is not None}
    return [row | ({"meta": meta[row["id"]]} if row["id"] in meta else {}) for row in rows]


def _meta(fields: Fields) -> dict[str, Any]:
    meta: dict[str, Any] = fields.get("meta", dict)
    if is_deeper(meta, DEEPEST_META) or not is_unicode(json.dumps(meta, ensure_ascii=False)):
        raise fields.error(f"meta has a lone surrogate, or more than {DEEPEST_META} levels")
    return meta


def _parts(fields: Fields, kind: Kind) -> tuple[tuple[Text, ...], tuple[str, ...] | None]:
    """The main text and `second`, and the roles."""
    known = [key for key in _FORMS if key in kind.keys]
    given = [key for key in known if key in fields]
    if len(given) != 1:
        raise fields.error(f"give exactly one of {', '.join(known)}, not {' and '.join(given) or 'none'}")
    second = (_text(fields, "second"),) if "second" in fields else ()
    if given == ["turns"]:
        texts, roles = _turns(fields)
        return (texts, *second), roles
    if given == ["pixels"]:
        return (tuple(map(str, fields.items("pixels", int))), *second), None
    return (fields.text("text") if given == ["text"] else fields.texts(given[0]), *second), None


def _text(fields: Fields, key: str) -> Text:
    return fields.text(key) if isinstance(fields.record[key], str) else fields.texts(key)


def _turns(fields: Fields) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    turns = fields.objects("turns", {"speaker", "role", "text"})
    keys = [next((key for key in ("role", "speaker") if turn.record.get(key) is not None), None) for turn in turns]
    texts = tuple(turn.text("text") for turn in turns)
    if not any(keys):
        return texts, None
    if None in keys:
        raise fields.error(f"turn {keys.index(None) + 1} has neither role nor speaker, but others have")
    return texts, tuple(turn.text(key or "") for turn, key in zip(turns, keys, strict=True))


def _target(fields: Fields, key: str) -> tuple[str, ...] | None:
    if fields.record.get(key) is None:
        return None
    return tuple(fields.text(key).split("\n")) if isinstance(fields.record[key], str) else fields.texts(key)


def _choices(fields: Fields) -> tuple[str, ...]:
    if "choices" not in fields:
        return fields.texts("candidates") if "candidates" in fields else ()
    question = fields.text("question").strip() if "question" in fields else ""
    return tuple(f"{question} {choice}" if question else choice for choice in fields.texts("choices"))


def _label(fields: Fields, value: Any, number: bool = False) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(fields.checked(value, int if number or is_number else str, "label"))


def _answers(fields: Fields, key: str) -> tuple[Answer, ...]:
    return tuple(Answer(item.text("text"), item.get("start", int)) for item in fields.objects(key, {"text", "start"}))


def _annotations(fields: Fields) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            item.get("paragraph", int) if "paragraph" in item else None,
            _answers(item, "spans") if "spans" in item else (),
            item.text("yes_no") if "yes_no" in item else None,
        )
        for item in fields.objects("annotations", {"paragraph", "spans", "yes_no"})
    )


def _annotation_to_json(annotation: Annotation) -> dict[str, Any]:
    fields = asdict(annotation)
    return {key: fields[key] for key in ("paragraph", "yes_no", "spans") if fields[key] not in (None, ())}
