"""Join the output of fairseq-generate to one text per document, chunks in order."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.files import read_lines
from ..data.ids import Chunk, read_ids
from ..data.outputs import check_output
from ..data.pipeline import recorded_settings
from ..data.text import is_blank, join_sentences, split_segments
from ..scoring.files import write_summaries

# fairseq-generate prints S-, T-, H- (tokens), D- (text) and P- lines: TYPE-SAMPLE <tab> SCORE <tab> TEXT.
_HYPOTHESIS = re.compile(r"([HD])-(\d+)\t[^\t]*(?:\t|$)")
_SUBSET = re.compile(r"Generate (\S+) with beam=")
_PIECES = re.compile(r"@@(\s|$)|<sep>|[\u2581\u0120]|^\d+( \d+)+$")  # of tokens that no --bpe has joined


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    generated = "read the output of fairseq-generate from these files"
    parser.add_argument("--generated", nargs="+", required=True, metavar="FILE", help=generated)
    parser.add_argument(
        "--ids", required=True, metavar="FILE", help="read the ids from DIR/text/test.ids of hat preprocess"
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="write one {id, text} a line to this file (.jsonl)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def main(args: argparse.Namespace) -> int:
    """Writes the joined texts in the order of the ids table."""
    check_output(args.out, args.overwrite, [args.ids, *args.generated])
    chunks = read_ids(args.ids)
    texts, settings = read_generated(args.generated, args.ids), recorded_settings(args.ids)
    with_segments = settings.get("target_separator", any("\t" in text for text in texts.values()))
    rows = join(chunks, texts, args.ids, settings.get("target_language", "en"), with_segments)
    write_summaries(args.out, rows)
    print(f"{args.out}: {len(rows)} documents from {len(chunks)} samples")
    expected: Counter[str] = Counter()
    for chunk in chunks:
        expected[chunk.document_id] += chunk.segments
    warn_of_texts(rows, sum(len(row["segments"]) != expected[row["id"]] for row in rows if "segments" in row))
    return 0


def warn_of_texts(rows: Sequence[Mapping[str, Any]], other_segments: int) -> None:
    """Warns of empty texts, and of texts with another number of segments than their source."""
    if empty := sum(is_blank(row["text"]) for row in rows):
        print(f"{empty} of {len(rows)} documents have an empty text", file=sys.stderr)
    if other_segments:
        print(
            f"{other_segments} of {len(rows)} documents have another number of segments than their source",
            file=sys.stderr,
        )


def read_generated(paths: Sequence[str | Path], ids: str) -> dict[int, str]:
    """Returns the final text (D- line) of every sample; `ids`: the file of their ids, for messages.

    Raises:
        ValueError: no D- lines, two for one sample, texts that are still tokens, or of another split than the ids.
    """
    texts: dict[int, str] = {}
    tokens: dict[int, str] = {}  # H- lines
    for path in paths:
        for number, line in read_lines(path):
            if subset := _SUBSET.match(line):
                of_subset = Path(ids).with_stem(subset[1])
                if of_subset != Path(ids) and of_subset.exists():
                    raise ValueError(f"{path}:{number}: the texts are of {subset[1]}: give --ids {of_subset}")
            match = _HYPOTHESIS.match(line)
            if match is None:
                continue
            sample = int(match[2])
            if match[1] == "H":
                tokens[sample] = line[match.end() :]
                continue
            if sample in texts:
                raise ValueError(
                    f"{path}:{number}: a second hypothesis for sample {sample}: generate with --nbest 1, "
                    "and give each file once"
                )
            texts[sample] = line[match.end() :]
    if not texts:
        content = f"only {len(tokens)} H- lines (tokens, not text)" if tokens else "no H- or D- lines"
        raise ValueError(f"{', '.join(map(str, paths))}: {content}: is it the output of fairseq-generate?")
    if texts == tokens and any(map(_PIECES.search, texts.values())):
        way_out = f"generate with --bpe document --document-pipeline {Path(ids).parent}"
        raise ValueError(f"{', '.join(map(str, paths))}: the D- lines are tokens, as the H- lines are: {way_out}")
    return texts


def join(
    chunks: Sequence[Chunk], texts: Mapping[int, str], ids_path: str | Path, language: str, with_segments: bool
) -> list[dict[str, Any]]:
    """Returns a row for each document with its chunks joined, documents in the order of their first samples.

    Args:
        chunks: from `read_ids`; `ids_path`: of their file, for messages.
        texts: text by number of sample, from `read_generated`.
        language, with_segments: see `document_row`.
    Raises:
        ValueError: a sample without text, or a text without sample.
    """
    if absent := [sample for sample in range(len(chunks)) if sample not in texts]:
        chunk = chunks[absent[0]]
        raise ValueError(
            f"{len(absent)} of {len(chunks)} samples of {ids_path} were not generated, the first is sample "
            f"{absent[0]} (document {chunk.document_id!r}, chunk {chunk.number}): "
            "was generation cut short, or did it skip samples?"
        )
    if (last := max(texts)) >= len(chunks):
        raise ValueError(f"sample {last} was generated, but {ids_path} has {len(chunks)} samples: another subset?")
    pieces: dict[str, dict[int, str]] = {}
    for sample, chunk in enumerate(chunks):
        pieces.setdefault(chunk.document_id, {})[chunk.number] = texts[sample]
    return [
        document_row(identifier, [text for _, text in sorted(numbered.items())], with_segments, language)
        for identifier, numbered in pieces.items()
    ]


def document_row(identifier: str, pieces: Sequence[str], with_segments: bool, language: str) -> dict[str, Any]:
    """Returns `{"id", "text"}` of a document from the texts of its chunks.

    Args:
        with_segments: segments are separated by tabs, and a chunk ends its last segment. The row then has `"segments"`,
            and they are joined in `"text"`.
        language: of the texts; those of Chinese and Japanese are joined without spaces.
    """
    if not with_segments:
        return {"id": identifier, "text": join_sentences(map(str.strip, pieces), language)}
    segments = [segment for piece in pieces for segment in split_segments(piece)]
    return {"id": identifier, "text": join_sentences(segments, language), "segments": segments}
