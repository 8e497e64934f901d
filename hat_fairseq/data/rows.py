"""`Row`: the tokens of a record, or of a part of it, as one sample of fairseq; its labels as tokens; the files of rows.

A label may be any text: white space, percent signs and whole names of control tokens (`<pad>`) are written as in a
URL, so that each label is one token and every token one label. `SPLIT.ids` names the record and the part of each row.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.text import CONTROL_TOKENS

BOS = "<s>"  # before each sentence or segment
EOS = "</s>"  # two of them between the parts of a row, as in RoBERTa; one between documents
NO_LABEL = "<pad>"  # where a token has no label; fairseq's padding, which no loss counts

# The tokens of a sentence, a segment or a row. Beside each is what it stands for, or None: the role of its sentence,
# the number of its word or segment, its characters in the context of a question.
Unit = list[tuple[str, Any]]


@dataclass(frozen=True)
class Row:
    """A record as the model reads it, or one chunk, one choice or one window of it."""

    id: str
    part: int  # number of the chunk, choice or window, from 0
    num_parts: int  # how many the record has
    # names and tokens of the lines to write. `source`: `<s> s1 <s> s2 [</s> </s> <s> t1]`, without the final
    # `</s>` that fairseq-preprocess appends; `target`; `role`, one for each token of the source; `label`, whose
    # form depends on the kind (docs/data.md). What is not known is missing.
    streams: dict[str, list[str]]
    # for each token of the source the number of the element (int) or the characters of the context (begin, end)
    # that it stands for, None for tokens that stand for none. Empty for kinds without.
    spans: list[Any] = field(default_factory=list)

    @property
    def tokens(self) -> list[str]:
        """The tokens of the source."""
        return self.streams["source"]

    @property
    def label(self) -> list[str] | None:
        """The tokens of the label, or None."""
        return self.streams.get("label")

    @property
    def segments(self) -> int:
        """The number of its markers."""
        return self.tokens.count(BOS)


def unit(tokens: Iterable[str], reference: Any = None) -> Unit:
    """Returns tokens that all stand for the same thing."""
    return [(token, reference) for token in tokens]


def marked(units: Sequence[Unit], references: Iterable[Any] = repeat(None)) -> Unit:
    """Returns the units of a part, each behind its marker; `references`: what the markers stand for."""
    return [pair for each, reference in zip(units, references, strict=False) for pair in ((BOS, reference), *each)]


def tokens_of(pairs: Unit) -> list[str]:
    return [token for token, _ in pairs]


def label_token(label: str) -> str:
    """`not hyper%partisan` -> `not%20hyper%25partisan`, `<pad>` -> `%3Cpad>`."""
    if label in CONTROL_TOKENS:
        return quote(label[0]) + label[1:]
    special = {c for c in label if c == "%" or c.isspace() or not c.isprintable()}
    return "".join(quote(c, safe="", errors="surrogatepass") if c in special else c for c in label)


def label_of(token: str) -> str:
    """Inverts `label_token`."""
    return unquote(token, errors="surrogatepass")


def write_label_dictionary(tokens: Iterable[str], path: Path) -> None:
    """Write fairseq's dictionary of label tokens: class i is line i (from 0)."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{token} 1\n" for token in tokens)


def read_label_dictionary(path: str | Path) -> list[str]:
    """Returns the labels, in the order of their classes, of a dictionary that `write_label_dictionary` wrote."""
    return [label_of(line.rsplit(" ", 1)[0]) for _, line in read_lines(path)]


def lines_of(row: Row, split: str, with_ids: bool) -> dict[str, str]:
    """By file a line of each stream of a row, and its ids (also in `bin`, to join rows with that alone)."""
    lines = {f"text/{split}.{stream}": " ".join(tokens) for stream, tokens in row.streams.items()}
    if with_ids:
        ids = f"{row.id}\t{row.part}\t{row.num_parts}\t{row.segments}"
        lines |= {f"{folder}/{split}.ids": ids for folder in ("text", "bin")}
    return lines


@dataclass(frozen=True)
class Chunk:
    """A line of the ids table: a fairseq sample is chunk `number` (from 0) of the `count` chunks of a document."""

    document_id: str
    number: int
    count: int
    segments: int  # of the source in the chunk


def read_ids(path: str | Path) -> list[Chunk]:
    """The ids table, line i (from 0) is fairseq's sample i; ValueError for a chunk that is repeated or missing."""
    chunks: dict[tuple[str, int], Chunk] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 4 or not all(map(str.isdecimal, fields[1:])):
            raise ValueError(
                f"{path}:{number}: expected document id, chunk, number of chunks and of segments, found {line[:80]!r}; "
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


def write_pieces(directory: Path, texts: Iterable[dict[str, bytes]]) -> None:
    """Write files in pieces: each item has one more piece of every file, by its path in the directory.

    ValueError if an item has other files: line i of all files is about row i.
    """
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {}
        for pieces in texts:
            files = files or {name: stack.enter_context(open(directory / name, "wb")) for name in pieces}
            if pieces and pieces.keys() != files.keys():
                raise ValueError(f"some rows have all of {', '.join(sorted(files | pieces))}, and others have not")
            for name, piece in pieces.items():
                files[name].write(piece)
