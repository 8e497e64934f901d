"""Files of labels: JSON lines with an id and a label, or one label for each segment or word of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines


def read_labels(path: str | Path, missing: bool = False) -> dict[str, tuple[str | None, ...]]:
    """Return the labels of each document, in the file's order: one where it has ``label``, else its ``labels``.

    Other keys are not looked at, so examples and predictions are read alike. A whole number stands for its digits.

    Args:
        missing: a null among ``labels`` is allowed: an element without prediction.

    Raises:
        ValueError: with file and line: no id, an id for the second time, no labels, or something else in their place;
            an empty file.
    """
    labels: dict[str, tuple[str | None, ...]] = {}
    for number, record in read_json_lines(path):
        where = f"{path}:{number}"
        identifier = record.get("id")
        if not isinstance(identifier, str):
            raise ValueError(f"{where}: no 'id' among its keys {sorted(record)}, or it is no string")
        if identifier in labels:
            raise ValueError(f"{where}: the id {identifier!r} for the second time")
        labels[identifier] = _labels(record, where, missing)
    if not labels:
        raise ValueError(f"{path} is empty: nothing to score")
    return labels


def check_joined(hypotheses: Mapping[str, Any], references: Mapping[str, Any], paths: tuple[str, str]) -> None:
    """Refuse two files that are not about the same documents.

    Args:
        paths: of the two files, for messages.

    Raises:
        ValueError: naming the first id that only one of them has.
    """
    for wanted, present, path in ((references, hypotheses, paths[0]), (hypotheses, references, paths[1])):
        absent = [identifier for identifier in wanted if identifier not in present]
        if absent:
            raise ValueError(f"{path} lacks {len(absent)} of {len(wanted)} ids, the first is {absent[0]!r}")


def check_lengths(hypotheses: Mapping[str, Any], references: Mapping[str, Any], paths: tuple[str, str]) -> None:
    """Refuse a document with more or fewer labels than its reference, naming it.

    Raises:
        ValueError: naming the first one.
    """
    for identifier, gold in references.items():
        if len(gold) != len(hypotheses[identifier]):
            raise ValueError(
                f"document {identifier!r}: {len(hypotheses[identifier])} labels in {paths[0]}, but {len(gold)} in "
                f"{paths[1]}"
            )


def _labels(record: Mapping[str, Any], where: str, missing: bool) -> tuple[str | None, ...]:
    given = [key for key in ("label", "labels") if record.get(key) is not None]
    if len(given) != 1:
        raise ValueError(f"{where}: expected either 'label' or 'labels' among its keys {sorted(record)}")
    values = record[given[0]] if given[0] == "labels" else [record["label"]]
    if not isinstance(values, list) or not values:
        raise ValueError(f"{where}: 'labels' must be a list of labels, found {values!r:.60}")
    return tuple(_texts(values, where, missing and given[0] == "labels"))


def _texts(values: Iterable[Any], where: str, missing: bool) -> Iterable[str | None]:
    for value in values:
        if value is None and missing:
            yield None
        elif (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool)):
            yield str(value)
        else:
            raise ValueError(f"{where}: a label must be a string, found {value!r:.60}")
