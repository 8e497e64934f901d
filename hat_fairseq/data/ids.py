"""The ids table `SPLIT.ids`: the document and chunk of each fairseq sample."""

from dataclasses import dataclass
from pathlib import Path

from .files import read_lines
from .rows import Row


@dataclass(frozen=True)
class Chunk:
    """A line of the ids table: a fairseq sample is chunk `number` (from 0) of the `count` chunks of a document.

    Attributes:
        segments: number of source segments in the chunk.
    """

    document_id: str
    number: int
    count: int
    segments: int


def ids_line(row: Row) -> str:
    """The line of a row, without its end."""
    return f"{row.id}\t{row.part}\t{row.num_parts}\t{row.segments}"


def read_ids(path: str | Path) -> list[Chunk]:
    """Reads the ids table; line i (from 0) is fairseq's sample i.

    Raises:
        ValueError: with file and line: not four columns, a repeated chunk, or a document with a missing chunk.
    """
    chunks = []
    line_of: dict[tuple[str, int], int] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 4 or not all(map(str.isdecimal, fields[1:])):
            raise ValueError(
                f"{path}:{number}: expected document id, chunk, number of chunks and of segments, found {line[:80]!r}; "
                "data of an earlier version: run hat preprocess again"
            )
        chunk = Chunk(fields[0], *map(int, fields[1:]))
        key = chunk.document_id, chunk.number
        if key in line_of:
            raise ValueError(
                f"{path}:{number}: chunk {key[1]} of document {key[0]!r} is on line {line_of[key]} already"
            )
        line_of[key] = number
        chunks.append(chunk)
    for number, chunk in enumerate(chunks, start=1):
        for other in range(chunk.count):
            if (chunk.document_id, other) not in line_of:
                raise ValueError(
                    f"{path}:{number}: document {chunk.document_id!r} has {chunk.count} chunks, "
                    f"but the line of chunk {other} is missing"
                )
    return chunks
