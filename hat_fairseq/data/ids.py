"""The table of ids: which document, and which chunk of it, each row of the binary data is."""

from dataclasses import dataclass
from pathlib import Path

from hat_fairseq.data.files import read_columns


@dataclass(frozen=True)
class Chunk:
    """A line of the ids table: a fairseq sample is chunk `number` (from 0) of the `count` chunks of a document."""

    document_id: str
    number: int
    count: int
    segments: int  # of the source in the chunk


def read_ids(path: str | Path) -> list[Chunk]:
    """Returns the ids table, line i (from 0) is fairseq's sample i.

    Raises ValueError for a chunk that is repeated or missing.
    """
    chunks: dict[tuple[str, int], Chunk] = {}
    for number, fields in read_columns(path):
        if len(fields) != 4 or not all(map(str.isdecimal, fields[1:])):
            line = "\t".join(fields)[:80]
            raise ValueError(
                f"{path}:{number}: expected document id, chunk, number of chunks and of segments, found {line!r}; "
                "data of an earlier version: run hat preprocess again"
            )
        chunk = Chunk(fields[0], *map(int, fields[1:]))
        key = chunk.document_id, chunk.number
        if key in chunks:
            earlier = list(chunks).index(key) + 1
            raise ValueError(f"{path}:{number}: chunk {key[1]} of document {key[0]!r} is on line {earlier} already")
        chunks[key] = chunk
    for number, chunk in enumerate(chunks.values(), start=1):
        for other in range(chunk.count):
            if (chunk.document_id, other) not in chunks:
                raise ValueError(
                    f"{path}:{number}: document {chunk.document_id!r} has {chunk.count} chunks, "
                    f"but the line of chunk {other} is missing"
                )
    return list(chunks.values())
