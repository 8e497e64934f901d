"""Tables with tabs between columns and their names in the first line, in which quotes are characters like any other."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hat_fairseq.data.files import read_lines

Row = tuple[int, dict[str, str]]


def read_tsv(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the line number and the wanted columns of each row.

    The file may have other columns as well. A row may end early if only columns that are not wanted are missing.

    Args:
        columns: must be there.
        optional: are left out of the rows where the file does not have them.

    Raises:
        ValueError: the first line does not name the columns, or a row has too few or too many; with file and line.
    """
    header: list[str] = []
    for number, line in read_lines(path):
        fields = line.removesuffix("\r").split("\t")
        if number == 1:
            header = fields
            if missing := [column for column in columns if column not in header]:
                raise ValueError(f"{path}:1: no column {missing[0]!r}; the columns are {', '.join(header):.200}")
            places = {column: header.index(column) for column in (*columns, *optional) if column in header}
            continue
        if not max(places.values()) < len(fields) <= len(header):
            raise ValueError(
                f"{path}:{number}: {len(fields)} columns, the first line names {len(header)}; is the file cut off?"
            )
        yield number, {column: fields[place] for column, place in places.items()}
    if not header:
        raise ValueError(f"{path} is empty")
