"""Files of summaries: JSON lines with ids, or plain text with one document a line; joined by id where both have ids."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines, read_lines
from hat_fairseq.scoring.rouge import Summary

HYPOTHESIS_KEYS = ("text",)
REFERENCE_KEYS = ("target", "summary")


@dataclass(frozen=True)
class Summaries:
    """The summaries of one file, in its order; ``ids`` is None where the file has none."""

    path: str
    texts: list[Summary]
    ids: list[str] | None


def read_summaries(path: str | Path, keys: Sequence[str]) -> Summaries:
    """Read ``.jsonl`` or ``.jsonl.gz`` (key ``id`` and the first present of ``keys``), or plain text.

    Raises:
        ValueError: with file and line: not UTF-8, not a JSON object, no such key, a double id, ids on some lines only.
    """
    name = str(path)
    if not name.endswith((".jsonl", ".jsonl.gz")):
        return Summaries(name, [line for _, line in read_lines(path)], None)
    texts: list[Summary] = []
    ids: dict[str, int] = {}
    for number, row in read_json_lines(path):
        identifier, text = _parse(row, f"{name}:{number}", keys)
        texts.append(text)
        if identifier is not None:
            if identifier in ids:
                raise ValueError(f"{name}:{number}: the id {identifier!r} is on line {ids[identifier]} already")
            ids[identifier] = number
    if ids and len(ids) != len(texts):
        raise ValueError(f"{name}: {len(ids)} of {len(texts)} lines have an id: give all of them one, or none")
    return Summaries(name, texts, list(ids) if ids else None)


def pair(hypotheses: Summaries, references: Summaries) -> list[Summary]:
    """Return the hypotheses in the references' order: by id where both files have ids, else line by line.

    Raises:
        ValueError: differing numbers of documents, or ids that only one of the files has.
    """
    if hypotheses.ids is None or references.ids is None:
        if len(hypotheses.texts) != len(references.texts):
            raise ValueError(
                f"{hypotheses.path} has {len(hypotheses.texts)} documents, "
                f"but {references.path} has {len(references.texts)}"
            )
        return hypotheses.texts
    by_id = dict(zip(hypotheses.ids, hypotheses.texts, strict=True))
    _check_known(references.ids, by_id, hypotheses.path)
    _check_known(hypotheses.ids, set(references.ids), references.path)
    return [by_id[identifier] for identifier in references.ids]


def write_summaries(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line; the file appears under its name only when complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _parse(row: Mapping[str, Any], where: str, keys: Sequence[str]) -> tuple[str | None, Summary]:
    key = next((key for key in keys if row.get(key) is not None), None)
    if key is None:
        raise ValueError(f"{where}: no {' or '.join(map(repr, keys))} among its keys {sorted(row)}")
    text = row[key]
    if not (isinstance(text, str) or (isinstance(text, list) and all(isinstance(item, str) for item in text))):
        raise ValueError(f"{where}: {key!r} must be a string or a list of strings, found {str(text)[:60]!r}")
    identifier = row.get("id")
    return None if identifier is None else str(identifier), text


def _check_known(wanted: Sequence[str], present: Mapping[str, Summary] | set[str], path: str) -> None:
    absent = [identifier for identifier in wanted if identifier not in present]
    if absent:
        raise ValueError(f"{path} lacks {len(absent)} of {len(wanted)} documents, the first with id {absent[0]!r}")
