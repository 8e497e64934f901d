"""The folder and files of a downloaded release, checked before anything is read, or found by name at any depth.

And their tables of texts with named columns: of any format that `hat preprocess` reads, or columns with tabs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hat_fairseq.data import compression
from hat_fairseq.data.files import Fields, read_columns, read_lines
from hat_fairseq.data.formats import ending_of, opened

NAMES = {"train": ("train",), "valid": ("validation", "valid", "val"), "test": ("test",)}
ENDINGS = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet")


def release_folder(root: Path | None, content: str) -> Path:
    """Return the folder that `--root` names; ValueError if there is none. `content`: what it must contain."""
    if root is None:
        raise ValueError(f"--root DIR is required: the folder of the downloaded release, containing {content}")
    if not root.is_dir():
        raise ValueError(f"--root {root} is not a folder; it must be one that contains {content}")
    return root


def release_file(path: Path, content: str) -> Path:
    """Return `path`; ValueError if it is no file. `content`: what its folder must contain, for the message."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder must hold {content}")
    return path


def release_texts(folder: Path, content: str, counts: Counter[str]) -> list[Path]:
    """Return the `.txt` files of a folder; ValueError for none. `content`: what `--root` must contain.

    Other files are counted, but those whose names begin with a dot.
    """
    if not (texts := sorted(folder.glob("*.txt"))):
        raise ValueError(f"{folder} has no .txt files; --root must be a folder with {content}")
    if others := sum(file.is_file() and file.suffix != ".txt" for file in folder.glob("[!.]*")):
        counts[f"files_without_txt_in_{folder.name}"] += others
    return texts


def read_text(path: Path) -> str:
    """Read the text of a file; ValueError as `read_lines`."""
    return "\n".join(line for _, line in read_lines(path))


def find(root: Path, *patterns: str) -> Path | None:
    """Find the file with one of these names (`*`, also compressed) in `root`, the first first; ValueError for two."""
    for pattern in patterns:
        endings = ("", *compression.ENDINGS)
        files = sorted(file for ending in endings for file in root.rglob(pattern + ending) if file.is_file())
        if len(files) > 1:
            raise ValueError(f"found more than one file for {pattern}: {', '.join(map(str, files))}; keep only one")
        if files:
            return files[0]
    return None


def find_one(root: Path, *patterns: str) -> Path:
    """Find a file as `find` does; ValueError also if no file matches."""
    if (file := find(root, *patterns)) is None:
        raise ValueError(f"{root}: {' or '.join(patterns)} is missing (also looked for .gz and so on, in all folders)")
    return file


def tables(folder: Path, split: str) -> list[Path]:
    """List the files that may be the table of a split."""
    files = [file for name in NAMES[split] for file in sorted(folder.glob(f"{name}.*"))]
    return [file for file in files if ending_of(file.name) in ENDINGS]


def count_other_release(files: Sequence[Path], counts: Counter[str]) -> None:
    """Count the files of another release of the same data set beside those that are read."""
    if number := sum(file.is_file() for file in files):
        counts["files_of_another_release_not_read"] += number


def read_table(
    folder: Path, split: str, columns: Sequence[str], counts: Counter[str], otherwise: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and cells of each row of the table of texts of a split; null is an empty text.

    Its file is `validation.csv`, `val.json` or `valid.jsonl.gz` for `valid`. ValueError for none or two, and for other
    columns. `otherwise`: another form that the folder might have had, for the message.
    """
    files, name = tables(folder, split), NAMES[split][0]
    if len(files) != 1:
        raise ValueError(
            f"{folder}: expected {otherwise}one file {name}.csv or {name}.jsonl or {name}.json (also compressed), "
            f"found {' and '.join(map(str, files)) or 'none'}"
        )
    with opened(files[0], counts) as file:
        for where, row in file.rows(keep_empty=True):
            if row.keys() != set(columns):
                raise ValueError(f"{where}: expected {', '.join(columns)}, and this has {', '.join(row) or 'none'}")
            fields = Fields({column: "" if cell is None else cell for column, cell in row.items()}, where)
            yield where, {column: fields.text(column) for column in columns}


def read_tsv(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the wanted columns of each row; quotes are characters like any other.

    The file may have other columns as well. A row may end early if only columns that are not wanted are missing.
    ValueError with file and line if the first line does not name the columns, or a row has too few or too many.
    """
    header: list[str] = []
    for number, fields in read_columns(path):
        if number == 1:
            header = fields
            if missing := [column for column in columns if column not in header]:
                raise ValueError(f"{path}:1: no column {missing[0]!r}; the columns are {', '.join(header):.200}")
            places = {column: header.index(column) for column in columns}
            continue
        if not max(places.values()) < len(fields) <= len(header):
            raise ValueError(
                f"{path}:{number}: {len(fields)} columns, the first line names {len(header)}; is the file cut off?"
            )
        yield number, {column: fields[place] for column, place in places.items()}
    if not header:
        raise ValueError(f"{path} is empty")
