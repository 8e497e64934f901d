"""Print documents beside their references and generated texts: one, or those with the lowest or highest score."""

import argparse
import heapq
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator

from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import normalise
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts
from hat_fairseq.scoring.rouge import RougeSettings, score_documents, split_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", required=True, help="text/SPLIT.jsonl of `hat preprocess`")
    parser.add_argument("--hypotheses", required=True, help="generated summaries, .jsonl with ids")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--id", help="which document; default: the first")
    for name, rank in (("worst", "lowest"), ("best", "highest")):
        text = f"the N documents with the {rank} ROUGE-1 F x 100, or chrF2 where the target language is not English"
        which.add_argument(f"--{name}", type=int, metavar="N", help=text)
    text = "translations segment by segment: source, generated text and reference, with chrF2 of each"
    parser.add_argument("--segments", action="store_true", help=text)
    parser.add_argument("--sentences", type=int, default=12, help="sentences, turns or segments to print")


def main(args: argparse.Namespace) -> int:
    summaries = read_texts(args.hypotheses, ("segments",) if args.segments else HYPOTHESIS_KEYS)
    if summaries.ids is None:
        raise ValueError(f"{args.hypotheses}: no ids; give the .jsonl of `hat join` or `hat summarize`")
    texts = dict(zip(summaries.ids, (split_summary(text, "given") for (text,) in summaries.texts), strict=True))
    number = args.best if args.worst is None else args.worst
    if number is not None and number < 1:
        raise ValueError(f"--worst and --best need a number of at least 1, not {number}")
    name, score = ("chrF2", _chrf2) if args.segments else _metric(args.documents)

    def scored() -> Iterator[tuple[float, Record, list[str]]]:
        for document in read_records(args.documents):
            if args.id not in (None, document.id):
                continue
            if document.id not in texts:
                raise ValueError(f"{args.hypotheses} has no summary of document {document.id!r}")
            if number is not None and document.target is None:
                raise ValueError(f"{args.documents}: document {document.id!r} has no target to score against")
            text = texts[document.id]
            yield score(" ".join(text), " ".join(document.target or ())) if number else 0.0, document, text

    if number is None:
        if (first := next(scored(), None)) is None:
            raise ValueError(f"no document {args.id!r}" if args.id else "there is no document")
        print("\n".join(_lines(*first[1:], args)))
        return 0
    choose = heapq.nlargest if args.worst is None else heapq.nsmallest
    for figure, document, text in choose(number, scored(), key=lambda row: row[0]):
        print("\n".join([f"=== {name} {figure:.2f}", *_lines(document, text, args), ""]))
    return 0


def _metric(path: str) -> tuple[str, Callable[[str, str], float]]:
    """Name and function of the score of one text, `(hypothesis, reference) -> 0 to 100`; ROUGE knows a-z alone."""
    if recorded_language(path) in (None, "en"):
        stem = RougeSettings.stem
        return "ROUGE-1", lambda text, target: 100 * float(score_documents([[text]], [[target]], stem)["rouge1"][0])
    return "chrF2", _chrf2


def _chrf2(text: str, target: str) -> float:
    """chrF2 of one text, 0 to 100 (Popovic 2015; sacrebleu's defaults)."""
    from sacrebleu.metrics import CHRF

    return float(CHRF().sentence_score(text, [target]).score)


def _lines(document: Record, generated: list[str], args: argparse.Namespace) -> Iterator[str]:
    """Lines to print: the first sentences, or segments with all texts; how many are left out; the whole texts."""
    sentences, target = document.sentences or (document.text or "",), document.target or ()
    if args.segments and len({len(sentences), len(generated), len(target)}) > 1:
        counts = f"{len(sentences)} of the source, {len(generated)} generated, {len(target)} of the reference"
        raise ValueError(f"{document.name} has no equal numbers of segments ({counts}); leave --segments out")
    what = "segments" if args.segments else "sentences or turns"
    yield f"--- {normalise(document.id, Counter())}: {len(sentences)} {what}"
    for number, sentence in enumerate(sentences[: args.sentences]):
        if args.segments:
            yield f"[{number + 1}] chrF2 {_chrf2(generated[number], target[number]):.2f}"
            for name, text in (("source", sentence), ("generated", generated[number]), ("reference", target[number])):
                yield from _wrapped(f"{name}: {text}")
        else:
            yield from _wrapped(f"{document.roles[number]}: {sentence}" if document.roles else sentence)
    if len(sentences) > args.sentences:
        yield f"  [{len(sentences) - args.sentences} more]"
    if not args.segments:
        yield from ["--- reference", *_wrapped(" ".join(target))] if target else []
        yield from ["--- generated", *_wrapped(" ".join(generated))]


def _wrapped(text: str) -> list[str]:
    text = normalise(text, Counter())  # nothing that a terminal obeys
    return textwrap.wrap(text, width=110, initial_indent="  ", subsequent_indent="    ")
