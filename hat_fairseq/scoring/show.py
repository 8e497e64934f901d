"""Print documents beside their references and generated texts: one, or those with the lowest or highest score."""

import argparse
import heapq
import itertools
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import normalise
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts
from hat_fairseq.scoring.rouge import score_documents
from hat_fairseq.scoring.rouge_settings import RougeSettings, split_summary

WIDTH, COLUMN = 110, 36


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", required=True, help="text/SPLIT.jsonl of `hat preprocess`")
    parser.add_argument("--hypotheses", required=True, help="generated summaries, .jsonl with ids")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--id", help="which document; default: the first")
    for name, rank in (("worst", "lowest"), ("best", "highest")):
        text = f"the N documents with the {rank} ROUGE-1 F x 100, or chrF2 where the target language is not English"
        which.add_argument(f"--{name}", type=int, metavar="N", help=text)
    text = "translations segment by segment: source, generated text and reference side by side, with chrF2 of each"
    parser.add_argument("--segments", action="store_true", help=text)
    parser.add_argument("--sentences", type=int, default=12, help="sentences, turns or segments to print")


def main(args: argparse.Namespace) -> int:
    summaries = read_texts(args.hypotheses, ("segments",) if args.segments else HYPOTHESIS_KEYS)
    if summaries.ids is None:
        raise ValueError(f"{args.hypotheses}: no ids; give the .jsonl of `hat join` or `hat summarize`")
    lines = (split_summary(text, "given") for (text,) in summaries.texts)
    texts = dict(zip(summaries.ids, lines, strict=True))
    show = render_segments if args.segments else render
    documents = read_records(args.documents)
    if args.worst is None and args.best is None:
        document = find(documents, args.id)
        print("\n".join(show(document, text_of(document, texts, args.hypotheses), args.sentences)))
        return 0
    number, choose = (args.worst, heapq.nsmallest) if args.best is None else (args.best, heapq.nlargest)
    if number < 1:
        raise ValueError(f"--worst and --best need a number of at least 1, not {number}")
    name, score = ("chrF2", chrf2) if args.segments else metric_of(args.documents)

    def scored() -> Iterator[tuple[float, Record, list[str]]]:
        for document in documents:
            text = text_of(document, texts, args.hypotheses)
            if document.target is None:
                raise ValueError(f"{args.documents}: document {document.id!r} has no target to score against")
            yield score(" ".join(text), " ".join(document.target)), document, text

    for figure, document, text in choose(number, scored(), key=lambda row: row[0]):
        print("\n".join([f"=== {name} {figure:.2f}", *show(document, text, args.sentences), ""]))
    return 0


def text_of(document: Record, texts: dict[str, list[str]], path: str) -> list[str]:
    """The generated lines or segments of a document; ValueError where `path` has none."""
    if document.id not in texts:
        raise ValueError(f"{path} has no summary of document {document.id!r}")
    return texts[document.id]


def metric_of(path: str) -> tuple[str, Callable[[str, str], float]]:
    """Name and function of the score of one text, `(hypothesis, reference) -> 0 to 100`; ROUGE knows a-z alone."""
    if recorded_language(path) in (None, "en"):
        stem = RougeSettings.stem
        return "ROUGE-1", lambda text, target: 100 * float(score_documents([[text]], [[target]], stem)["rouge1"][0])
    return "chrF2", chrf2


def chrf2(text: str, target: str) -> float:
    """chrF2 of one text, 0 to 100 (Popovic 2015; sacrebleu's defaults)."""
    from sacrebleu.metrics import CHRF

    return float(CHRF().sentence_score(text, [target]).score)


def find(documents: Iterable[Record], id_: str | None) -> Record:
    """The document called `id_`, or the first one."""
    for document in documents:
        if id_ is None or document.id == id_:
            return document
    raise ValueError(f"no document {id_!r}" if id_ else "there is no document")


def render(document: Record, summary: list[str], num_sentences: int) -> list[str]:
    """Lines to print: the first sentences with their roles, how many are left out, reference, summary."""
    sentences = document.sentences or (document.text or "",)
    roles = document.roles or [""] * len(sentences)
    lines = [f"--- {normalise(document.id, Counter())}: {len(sentences)} sentences or turns"]
    for role, sentence in list(zip(roles, sentences, strict=True))[:num_sentences]:
        lines += _wrapped(f"{role}: {sentence}" if role else sentence)
    if len(sentences) > num_sentences:
        lines.append(f"  [{len(sentences) - num_sentences} more]")
    if document.target is not None:
        lines += ["--- reference", *_wrapped(" ".join(document.target))]
    return [*lines, "--- generated", *_wrapped(" ".join(summary))]


def render_segments(document: Record, generated: list[str], num_segments: int) -> list[str]:
    """Lines to print: each segment's chrF2, and source, text and reference in columns; ValueError if numbers differ."""
    parts = [list(document.sentences or ()), generated, list(document.target or ())]
    if not parts[0] or len({len(part) for part in parts}) > 1:
        counts = "{} of the source, {} generated, {} of the reference".format(*map(len, parts))
        raise ValueError(f"{document.name} has no equal numbers of segments ({counts}); leave --segments out")
    lines = [f"--- {normalise(document.id, Counter())}: {len(generated)} segments: source | generated | reference"]
    for number, texts in enumerate(list(zip(*parts, strict=True))[:num_segments], start=1):
        lines.append(f"[{number}] chrF2 {chrf2(texts[1], texts[2]):.2f}")
        columns = [_columns(text) for text in texts]
        for cells in itertools.zip_longest(*columns, fillvalue=""):
            lines.append(" | ".join(cell + " " * (COLUMN - _width(cell)) for cell in cells).rstrip())
    return lines + ([f"  [{len(generated) - num_segments} more]"] if len(generated) > num_segments else [])


def _columns(text: str) -> list[str]:
    """The lines of a column; letters of double width, such as Chinese ones, take two places."""
    clean = normalise(text, Counter())  # nothing that a terminal obeys
    return textwrap.wrap(clean, COLUMN if _width(clean) == len(clean) else COLUMN // 2)


def _width(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _wrapped(text: str) -> list[str]:
    text = normalise(text, Counter())  # nothing that a terminal obeys
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
