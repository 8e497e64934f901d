"""How keys of records are called in a user's data, and ids for records without: `--columns`, `--number-ids`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hat_fairseq.options import OptionError


@dataclass(frozen=True)
class Columns:
    """The values of the two options."""

    pairs: tuple[str, ...] = ()  # KEY=COLUMN
    number_ids: bool = False

    def __post_init__(self) -> None:
        for pair in self.pairs:
            if "=" not in pair:
                raise OptionError("{columns}: expected KEY=COLUMN, for example text=article", columns=pair)
        split = [pair.split("=", 1) for pair in self.pairs]
        for names in ([key for key, _ in split if key], [column for _, column in split]):
            if twice := [name for name, count in Counter(names).items() if count > 1]:
                raise OptionError("{columns} names {} twice", repr(twice[0]), columns=None)

    def __bool__(self) -> bool:
        return bool(self.pairs or self.number_ids)

    @cached_property
    def key_of(self) -> Mapping[str, str]:
        """Returns the key of each column; an empty one for a column that is dropped."""
        return {column: key for key, column in (pair.split("=", 1) for pair in self.pairs)}

    def check_for(self, what: str) -> None:
        """Raises ValueError if an option is given, which has no effect on `what`."""
        if self:
            name = "columns" if self.pairs else "number_ids"
            raise OptionError(f"{{{name}}} has no effect on {{}}: remove it", what, **{name: None})

    def renamed(
        self, rows: Iterable[tuple[str, dict[str, Any]]], path: Path, counts: Counter[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the rows of a file with the keys of records.

        Raises:
            ValueError: the first row has not all columns, or a row has a column of the name of another one's key.
        """
        if not self.key_of:
            yield from rows
            return
        for number, (where, row) in enumerate(rows):
            if number == 0:
                if absent := [column for column in self.key_of if value_at(row, column) is ABSENT]:
                    raise self.unknown(path, absent[0], "columns", row)
                counts["columns_left_out"] = sum(not key for key in self.key_of.values())
            yield where, self.renamed_row(row, where)

    def unknown(self, path: Path, column: str, what: str, names: Iterable[str]) -> OptionError:
        """Returns the error of a column that is not among these columns or keys of a file."""
        names = ", ".join(map(repr, names))
        return OptionError("{}: {columns} names {!r}, and the {} are {}", path, column, what, names, columns=None)

    def renamed_row(self, row: dict[str, Any], where: str) -> dict[str, Any]:
        """Returns a row with the keys of records; ValueError for a column of the name of another one's key.

        An object of which a column such as `translation.en` is a part is dropped.
        """
        values = {column: value for column in self.key_of if (value := value_at(row, column)) is not ABSENT}
        divided = {column.partition(".")[0] for column in values if column not in row}
        for column in values:
            key = self.key_of[column]
            if key in row and key not in self.key_of and key not in divided:
                text = "{}: it has {!r} besides {!r}, which {columns} calls so; skip the former with ={}"
                raise OptionError(text, where, key, column, key, columns=None)
        others = {key: cell for key, cell in row.items() if key not in values and key not in divided}
        return others | {key: cell for column, cell in values.items() if (key := self.key_of[column])}

    def with_id(self, value: dict[str, Any], where: str, split: str, number: int) -> dict[str, Any]:
        """Returns a record with its number as the id, if that is wanted; ValueError if it has an id."""
        if not self.number_ids:
            return value
        if value.get("id") is not None:
            raise ValueError(f"{where}: it has the id {value['id']!r:.60}, and --number-ids is for records without ids")
        return {**value, "id": f"{'input' if split == '-' else split}-{number}"}


ABSENT = object()


def value_at(row: dict[str, Any], column: str) -> Any:
    """Returns the value of a column, which may be inside of an object, as `translation.en`; `ABSENT` without one."""
    if column in row:
        return row[column]
    value: Any = row
    for name in column.split("."):
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


AS_NAMED = Columns()


def columns_of(pairs: Sequence[str] | None, number_ids: bool | None) -> Columns:
    """Returns the values of the options, where None is an option that was not given."""
    return Columns(tuple(pairs or ()), bool(number_ids))
