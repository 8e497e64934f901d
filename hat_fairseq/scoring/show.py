"""Print documents beside their references and generated texts: one, or those with the lowest or highest score.

The score of a document is the best one against its references, as `hat score` has it.
"""

import argparse
import heapq
import textwrap
from collections import Counter
from collections.abc import Iterator

from hat_fairseq.data.kinds import Document
from hat_fairseq.data.language import base_language
from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import normalise
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts
from hat_fairseq.scoring.marks import without_marks
from hat_fairseq.scoring.rouge import score_documents, split_summary, suitable_words

SHOWN = 12  # sentences, turns or segments of a document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--documents",
        required=True,
        metavar="FILE",
        help="read the documents from text/SPLIT.jsonl of `hat preprocess`",
    )
    parser.add_argument(
        "--hypotheses", required=True, metavar="FILE", help="read the generated texts from this .jsonl file with ids"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--id", help="print the document with this id (default: the first)")
    for name, rank in (("worst", "lowest"), ("best", "highest")):
        text = f"print the N documents with the {rank} ROUGE-1 F x 100, or chrF2 if the target language is not English"
        which.add_argument(f"--{name}", type=int, metavar="N", help=text)
    text = "print translations segment by segment: source, generated text and reference, with the chrF2 of each"
    parser.add_argument("--segments", action="store_true", help=text)


def main(args: argparse.Namespace) -> int:
    summaries = read_texts(args.hypotheses, ("segments",) if args.segments else HYPOTHESIS_KEYS)
    if summaries.ids is None:
        raise ValueError(f"{args.hypotheses}: no ids; give the .jsonl of `hat generate` or `hat join`")
    texts = dict(zip(summaries.ids, (split_summary(text, "given") for (text,) in summaries.texts), strict=True))
    number = args.best if args.worst is None else args.worst
    if number is not None and number < 1:
        raise ValueError(f"--worst and --best need a number of at least 1, not {number}")
    in_english = base_language(recorded_language(args.documents) or "en") == "en"  # ROUGE knows a-z alone
    name, score = ("ROUGE-1", _rouge1) if in_english and not args.segments else ("chrF2", _chrf2)

    def scored() -> Iterator[tuple[float, Document, list[str]]]:
        for document in read_records(args.documents):
            assert isinstance(document, Document)  # the kind that is read by default
            if args.id not in (None, document.id):
                continue
            if document.id not in texts:
                raise ValueError(f"{args.hypotheses} has no summary of document {document.id!r}")
            if number is not None and not document.references:
                raise ValueError(f"{args.documents}: document {document.id!r} has no target to score against")
            text = texts[document.id]
            references = [without_marks(" ".join(reference)) for reference in document.references]
            yield score(" ".join(text), references) if number else 0.0, document, text

    if number is None:
        if (first := next(scored(), None)) is None:
            raise ValueError(f"no document {args.id!r}" if args.id else "there is no document")
        print("\n".join(_lines(*first[1:], args)))
        return 0
    choose = heapq.nlargest if args.worst is None else heapq.nsmallest
    for figure, document, text in choose(number, scored(), key=lambda row: row[0]):
        print("\n".join([f"=== {name} {figure:.2f}", *_lines(document, text, args), ""]))
    return 0


def _rouge1(text: str, references: list[str]) -> float:
    words = suitable_words(references)
    scores = score_documents([[text]] * len(references), [[each] for each in references], stem=True, words=words)
    return 100 * float(scores["rouge1"].max())


def _chrf2(text: str, references: list[str]) -> float:
    """chrF2 of one text, 0 to 100 (Popovic 2015; sacrebleu's defaults)."""
    from sacrebleu.metrics import CHRF

    return float(CHRF().sentence_score(text, references).score)


def _lines(document: Document, generated: list[str], args: argparse.Namespace) -> Iterator[str]:
    """Lines to print: the first sentences, or segments with all texts; how many are left out; the whole texts."""
    sentences, references = document.elements or (document.text or "",), document.references
    aligned = [reference for reference in references if len(reference) == len(sentences)]
    if args.segments and not (aligned and len(generated) == len(sentences)):
        lengths = " or ".join(str(len(reference)) for reference in references)
        counts = f"{len(sentences)} of the source, {len(generated)} generated, {lengths or 0} of the reference"
        raise ValueError(f"{document.name} has no equal numbers of segments ({counts}); remove --segments")
    what = "segments" if args.segments else "sentences or turns"
    yield f"--- {normalise(document.id, Counter())}: {len(sentences)} {what}"
    for number, sentence in enumerate(sentences[:SHOWN]):
        if args.segments:
            texts = [without_marks(reference[number]) for reference in aligned]
            yield f"[{number + 1}] chrF2 {_chrf2(generated[number], texts):.2f}"
            yield from _wrapped(f"source: {sentence}")
            yield from _wrapped(f"generated: {generated[number]}")
            for reference in aligned:
                yield from _wrapped(f"reference: {reference[number]}")
        else:
            yield from _wrapped(f"{document.roles[number]}: {sentence}" if document.roles else sentence)
    if len(sentences) > SHOWN:
        yield f"  [{len(sentences) - SHOWN} more]"
    if not args.segments:
        for reference in references:
            yield from ["--- reference", *_wrapped(" ".join(reference))]
        yield from ["--- generated", *_wrapped(" ".join(generated))]


def _wrapped(text: str) -> list[str]:
    text = normalise(text, Counter())  # nothing that a terminal obeys
    return textwrap.wrap(text, width=110, initial_indent="  ", subsequent_indent="    ")
