"""Print documents beside their references and generated texts: one, or those with the lowest or highest score."""

import argparse
import heapq
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import normalise
from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, read_texts
from hat_fairseq.scoring.rouge import score_documents
from hat_fairseq.scoring.rouge_settings import RougeSettings, split_summary

WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", required=True, help="text/SPLIT.jsonl of `hat preprocess`")
    parser.add_argument("--hypotheses", required=True, help="generated summaries, .jsonl with ids")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--id", help="which document; default: the first")
    for name, rank in (("worst", "lowest"), ("best", "highest")):
        text = f"the N documents with the {rank} ROUGE-1 F x 100, or chrF2 where the target language is not English"
        which.add_argument(f"--{name}", type=int, metavar="N", help=text)
    parser.add_argument("--sentences", type=int, default=12, help="sentences or turns of the source to print")


def main(args: argparse.Namespace) -> int:
    summaries = read_texts(args.hypotheses, HYPOTHESIS_KEYS)
    if summaries.ids is None:
        raise ValueError(f"{args.hypotheses}: no ids; give the .jsonl of `hat join` or `hat summarize`")
    lines = (split_summary(text, "given") for (text,) in summaries.texts)
    texts = dict(zip(summaries.ids, map(" ".join, lines), strict=True))
    documents = read_records(args.documents)
    if args.worst is None and args.best is None:
        document = find(documents, args.id)
        print("\n".join(render(document, text_of(document, texts, args.hypotheses), args.sentences)))
        return 0
    number, choose = (args.worst, heapq.nsmallest) if args.best is None else (args.best, heapq.nlargest)
    if number < 1:
        raise ValueError(f"--worst and --best need a number of at least 1, not {number}")
    name, score = metric_of(args.documents)

    def scored() -> Iterator[tuple[float, Record, str]]:
        for document in documents:
            text = text_of(document, texts, args.hypotheses)
            if document.target is None:
                raise ValueError(f"{args.documents}: document {document.id!r} has no target to score against")
            yield score(text, " ".join(document.target)), document, text

    for figure, document, text in choose(number, scored(), key=lambda row: row[0]):
        print("\n".join([f"=== {name} {figure:.2f}", *render(document, text, args.sentences), ""]))
    return 0


def text_of(document: Record, texts: dict[str, str], path: str) -> str:
    """The generated text of a document; ValueError where `path` has none."""
    if document.id not in texts:
        raise ValueError(f"{path} has no summary of document {document.id!r}")
    return texts[document.id]


def metric_of(path: str) -> tuple[str, Callable[[str, str], float]]:
    """Name and function of the score of one text, `(hypothesis, reference) -> 0 to 100`; ROUGE knows a-z alone."""
    if recorded_language(path) in (None, "en"):
        stem = RougeSettings.stem
        return "ROUGE-1", lambda text, target: 100 * float(score_documents([[text]], [[target]], stem)["rouge1"][0])
    from sacrebleu.metrics import CHRF

    chrf = CHRF()
    return "chrF2", lambda text, target: float(chrf.sentence_score(text, [target]).score)


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
    lines = [f"--- {normalise(document.id, Counter())}: {len(sentences)} sentences or turns"]
    for role, sentence in list(zip(roles, sentences, strict=True))[:num_sentences]:
        lines += _wrapped(f"{role}: {sentence}" if role else sentence)
    if len(sentences) > num_sentences:
        lines.append(f"  [{len(sentences) - num_sentences} more]")
    if document.target is not None:
        lines += ["--- reference", *_wrapped(" ".join(document.target))]
    return [*lines, "--- generated", *_wrapped(summary)]


def _wrapped(text: str) -> list[str]:
    text = normalise(text, Counter())  # nothing that a terminal obeys
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
