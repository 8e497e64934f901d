"""Print a document beside its reference and its generated summary."""

import argparse
import textwrap
from collections.abc import Iterable

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts

WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", required=True, help="text/SPLIT.jsonl of `hat preprocess`")
    parser.add_argument("--hypotheses", required=True, help="generated summaries, .jsonl with ids")
    parser.add_argument("--id", help="which document; default: the first")
    parser.add_argument("--sentences", type=int, default=12, help="sentences or turns of the source to print")


def main(args: argparse.Namespace) -> int:
    summaries = read_texts(args.hypotheses, HYPOTHESIS_KEYS)
    if summaries.ids is None:
        raise ValueError(f"{args.hypotheses}: no ids; give the .jsonl of `hat join` or `hat summarize`")
    texts = dict(zip(summaries.ids, summaries.texts, strict=True))
    document = find(read_records(args.documents), args.id)
    if document.id not in texts:
        raise ValueError(f"{args.hypotheses} has no summary of document {document.id!r}")
    print("\n".join(render(document, "".join(texts[document.id][0]), args.sentences)))
    return 0


def find(documents: Iterable[Record], id_: str | None) -> Record:
    """The document called `id_`, or the first one."""
    for document in documents:
        if id_ is None or document.id == id_:
            return document
    raise ValueError(f"no document {id_!r}" if id_ else "there is no document")


def render(document: Record, summary: str, num_sentences: int) -> list[str]:
    """Lines to print: the first sentences with their roles, how many are left out, reference, summary."""
    sentences = document.sentences or (document.text or "",)
    roles = document.roles or [""] * len(sentences)
    lines = [f"--- {document.id}: {len(sentences)} sentences or turns"]
    for role, sentence in list(zip(roles, sentences, strict=True))[:num_sentences]:
        lines += _wrapped(f"{role}: {sentence}" if role else sentence)
    if len(sentences) > num_sentences:
        lines.append(f"  [{len(sentences) - num_sentences} more]")
    if document.target is not None:
        lines += ["--- reference", *_wrapped(" ".join(document.target))]
    return [*lines, "--- generated", *_wrapped(summary)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
