"""Records as JSON objects: what users write, and what `text/SPLIT.jsonl` has. The keys are the fields of records."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hat_fairseq.data.columns import AS_NAMED, Columns
from hat_fairseq.data.files import at, of_type, rows_of_lists, unicode_json
from hat_fairseq.data.formats import DataFile, OpenFile, opened
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.tables import Rows

SUMMARY = "summary"  # another name for the target when it is read
SOURCE = "source"  # another name for the text
ALIASES = {Answer: {"answer_start": "start"}}  # other names of fields, as the Hub has them
OTHERS = "other_references"  # the field for the second one and the others, which follow the target in its list
WITHOUT_ID = "; --number-ids of hat preprocess numbers the records"
RENAMED = "; --columns of hat preprocess renames it (KEY={0}) or skips it (={0})"
Decode = Callable[[Any, str], Any]  # makes a value of JSON, which has a name in messages, into a value of a type


def read_records(path: str | Path, kind: str | Kind = "text", counts: Counter[str] | None = None) -> Iterator[Record]:
    """Reads the records of a kind from a file of any format of `formats`.

    An empty cell of a table is null in a column of texts that the model reads, in others no key.

    `counts`: what is skipped is added to them. ValueError with the place as `OpenFile.rows` and `record_from_json`, and
    for an id twice.
    """
    path = Path(path)
    yield from read_files([path], kind, AS_NAMED, counts, path.name.partition(".")[0])


def read_files(
    files: Iterable[Path | DataFile], kind: str | Kind, columns: Columns, counts: Counter[str] | None, split: str
) -> Iterator[Record]:
    """Reads the records of the files of a split one after another, as `read_records`."""
    kind, earlier = kind_of(kind), dict[str, int]()
    for each in files:
        with opened(each, counts) as file:
            yield from records_in(file, file.rows(columns, keep_empty=True), kind, columns, split, earlier)


def records_in(
    file: OpenFile, rows: Rows, kind: Kind, columns: Columns, split: str, earlier: dict[str, int] | None = None
) -> Iterator[Record]:
    """Yields the records of an open file from its rows with their empty cells.

    `earlier`: the number of each record so far by its id, to which it adds.
    """
    texts, earlier = {*kind.record.one_of, *kind.record.reads}, {} if earlier is None else earlier
    for where, row in rows:
        number = len(earlier) + 1
        if file.is_table:
            row = {key: cell for key, cell in row.items() if cell is not None or key in texts}
        record = record_from_json(columns.with_id(row, where, split, number), where, kind, RENAMED)
        if (before := earlier.setdefault(record.id, number)) != number:
            raise ValueError(f"{where}: document id {record.id!r} was used before, in record {before}")
        yield record


def record_from_json(value: Any, where: str, kind: str | Kind = "text", way_out: str = "") -> Record:
    """Makes a record of a JSON object; `where` (file and line) opens every message of a ValueError, and is its origin.

    Null in place of a text is an empty text. In place of something that may be missing it is the same as no key.

    `way_out`: the end of the message about an unknown key, which it may name as `{0}`.
    """
    kind = kind_of(kind)
    with at(where):
        values = _decoded(kind.record, _repaired(value, where, kind) if isinstance(value, dict) else value, way_out)
    return kind.record(**values, origin=where)  # which opens its messages


def record_to_json(record: Record) -> dict[str, Any]:
    """Returns the object from which `record_from_json` makes the same record."""
    result: dict[str, Any] = _plain(record)
    if (others := result.pop(OTHERS, None)) and "target" in result:
        result["target"] = [result["target"], *others]
    return result


def _repaired(value: Mapping[str, Any], where: str, kind: Kind) -> dict[str, Any]:
    """The keys and the forms of values that the record has, of those that people write.

    A text to pack has an id, a text that is null in each form is empty, and documents with a target may have other
    names for it and for the text, and a list of several references.
    """
    value = dict(value)
    if kind.packs and value.get("id") is None:
        value["id"] = Path(where).name
    if kind.has_target:
        with at(f"document {value.get('id')!r}"):
            _rename_and_divide(value)
    value |= {key: repair(value[key]) for key, repair in kind.record.repairs.items() if key in value}
    forms = [form for form in kind.record.one_of if form in value]
    if forms and all(value[form] is None for form in forms):
        value[forms[0]] = "" if forms[0] == "text" else []
    return value


def _rename_and_divide(value: dict[str, Any]) -> None:
    """Renames a summary and a source, and divides several references into the target and the others."""
    if OTHERS in value:
        raise ValueError(f"unknown key {OTHERS!r}; several references are a list of lists in target")
    for other, key in ((SUMMARY, "target"), (SOURCE, "sentences" if isinstance(value.get(SOURCE), list) else "text")):
        if other in value and value.setdefault(key, None) is None:
            value[key] = value[other]
        elif value.get(other) is not None:
            raise ValueError(f"{key} and {other} are two names for the same thing; give one of them")
        value.pop(other, None)
    match value.get("target"):
        case [list() as first, *others]:
            if wrong := [each for each in others if not isinstance(each, list)]:
                raise ValueError(f"each reference in target must be a list, as the first is, not {wrong[0]!r:.60}")
            value |= {"target": first, OTHERS: others}


def json_line(record: Record) -> str:
    """Returns the record as a line of a JSON lines file; ValueError for NaN or infinity in its `meta`."""
    with at(record.name):
        return unicode_json(record_to_json(record))


def _decoded(cls: Any, value: Any, way_out: str = "") -> dict[str, Any]:
    """The fields of a dataclass in a JSON object, whose keys they are; ValueError for what it cannot have."""
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {value!r:.60}")
    keys, required = _keys(cls)
    if names := ALIASES.get(cls):
        value = {names[key] if names.get(key, key) not in value else key: item for key, item in value.items()}
    if unknown := value.keys() - keys.keys():
        known, key = ", ".join(key for key in keys if key != OTHERS), min(unknown)
        raise ValueError(f"unknown key {key!r}; known are {known}{way_out.format(key)}")
    if missing := required - value.keys():
        raise ValueError(f"the key {min(missing)!r} is missing{WITHOUT_ID * (min(missing) == 'id')}")
    return {key: keys[key][0](item, key) for key, item in value.items()}


def _object(cls: Any, value: Any, name: str) -> Any:
    """Makes a dataclass of a JSON object inside of a record; `name` opens the message of a ValueError."""
    with at(name):
        return cls(**_decoded(cls, value))


def _plain(value: Any) -> Any:
    """A value with objects for the dataclasses in it, which lack the fields that have their defaults."""
    if is_dataclass(value):
        cls: Any = type(value)
        values = ((key, getattr(value, key), default) for key, (_, default) in _keys(cls)[0].items())
        return {key: _plain(item) for key, item, default in values if item != default}
    if type(value) is tuple and value and not isinstance(value[0], str):
        return [_plain(each) for each in value]
    return value


@cache
def _keys(cls: Any) -> tuple[dict[str, tuple[Decode, Any]], frozenset[str]]:
    """The keys of a dataclass, each with its decoder and default, in the order of its fields; and the required keys."""
    hints = get_type_hints(cls)
    known = [each for each in fields(cls) if each.init and each.name != "origin"]
    known.sort(key=lambda each: each.name == "meta")  # the last one
    keys = {each.name: (_decoder(hints[each.name]), each.default) for each in known}
    return keys, frozenset(key for key, (_, default) in keys.items() if default is MISSING)


def _decoder(hint: Any) -> Decode:
    """For str, int, a mapping, a tuple of any length, a dataclass, any of them or None, or a str or a tuple."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return partial(_object, hint)
    if origin is tuple:
        return partial(_items, arguments[0], _decoder(arguments[0]))
    if origin in (Union, UnionType):
        lists = [each for each in arguments if get_origin(each) is tuple]
        others = [each for each in arguments if each is not NoneType and each not in lists]
        of_list, of_other = _decoder((lists or others)[0]), _decoder((others or lists)[0])
        return lambda value, name: (
            None if value is None else of_list(value, name) if isinstance(value, list) else of_other(value, name)
        )
    if hint is str:
        return lambda value, name: of_type("" if value is None else value, str, name)
    kind = dict if origin is Mapping else hint
    return lambda value, name: of_type(value, kind, name)


def _items(hint: Any, item_of: Decode, value: Any, name: str) -> tuple[Any, ...]:
    """Makes a tuple of values of a type of a list of JSON; null is an empty one."""
    value = [] if value is None else rows_of_lists(value, name) if is_dataclass(hint) else value
    if set(map(type, of_type(value, list, name))) <= {hint}:  # strings or numbers, quickly
        return tuple(value)
    name = f"each item of {name}"
    return tuple([item_of(item, name) for item in value])
