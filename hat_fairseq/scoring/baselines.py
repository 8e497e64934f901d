"""Write two baselines that any model has to beat: the lead of each document, and the best constant summary."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hat_fairseq.data.document import Document, read_documents
from hat_fairseq.scoring.rouge import make_scorer, make_tokenizer
from hat_fairseq.scoring.summaries import write_summaries


@dataclass(frozen=True)
class Constant:
    """A training summary that serves as the summary of every document.

    Attributes:
        document: the training document it belongs to.
        score: its mean ROUGE-1 + ROUGE-2 + ROUGE-L F (0 to 3) against the other summaries it was compared with.
        compared: how many those were.
    """

    document: Document
    score: float
    compared: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``hat baselines``."""
    parser.add_argument("--documents", required=True, metavar="FILE", help="the documents to summarize (.jsonl)")
    parser.add_argument("--train", required=True, metavar="FILE", help="the training documents with targets (.jsonl)")
    parser.add_argument("--out", required=True, metavar="DIR", help="receives lead.jsonl and constant.jsonl")
    parser.add_argument("--words", type=int, help="length of the lead (default: mean of the training summaries)")
    parser.add_argument(
        "--candidates",
        type=int,
        default=200,
        metavar="N",
        help="take the constant from at most N random training summaries (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of that choice (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Write both files and say how they were made."""
    documents = list(read_documents(args.documents))
    train = [document for document in read_documents(args.train) if document.target]
    if not train:
        raise ValueError(f"{args.train}: no document has a target")
    words = mean_words(train) if args.words is None else args.words
    if words < 1:
        raise ValueError(f"--words must be at least 1, not {words}")
    candidates = train
    if len(train) > args.candidates:
        candidates = random.Random(args.seed).sample(train, args.candidates)
    constant = best_constant(candidates)
    out = Path(args.out)
    write_summaries(out / "lead.jsonl", ({"id": doc.id, "text": lead(doc, words)} for doc in documents))
    sentences = list(constant.document.target or ())
    write_summaries(out / "constant.jsonl", ({"id": doc.id, "text": sentences} for doc in documents))
    print(f"lead.jsonl: the first {words} words of each of {len(documents)} documents")
    print(
        f"constant.jsonl: the summary of training document {constant.document.id!r}, the nearest of {len(candidates)} "
        f"(of {len(train)} in training) to the {constant.compared} others: mean sum of ROUGE-1, 2 and L "
        f"{100 * constant.score:.2f}"
    )
    return 0


def lead(document: Document, words: int) -> str:
    """Return the first ``words`` white-space separated words of the source, without roles, as running text."""
    text = document.text if document.text is not None else " ".join(document.sentences or ())
    return " ".join(text.split()[:words])


def mean_words(documents: Sequence[Document]) -> int:
    """Return the mean number of words of the targets, rounded down."""
    return sum(len(sentence.split()) for doc in documents for sentence in doc.target or ()) // len(documents)


def best_constant(documents: Sequence[Document]) -> Constant:
    """Return the target nearest to all others by mean ROUGE-1 + ROUGE-2 + ROUGE-L (summary, stemmed, given sentences).

    Only training targets are looked at: each is scored against every other one, so no test summary has a say. Exact,
    though ROUGE-L is computed for few: it never exceeds ROUGE-1 (both count a word as often as both sides have it), so
    a candidate is given up as soon as ROUGE-1 in ROUGE-L's place no longer suffices.

    Raises:
        ValueError: fewer than two targets.
    """
    if len(documents) < 2:
        raise ValueError(f"choosing a constant summary takes at least 2 training summaries, not {len(documents)}")
    tokenizer = make_tokenizer(stem=True)
    texts = ["\n".join(document.target or ()) for document in documents]
    ngrams = [_ngrams(tokenizer.tokenize(text)) for text in texts]
    overlaps = [[_overlap(ngrams, i, j) for j in range(len(texts)) if j != i] for i in range(len(texts))]
    bounds = [sum(2 * rouge1 + rouge2 for rouge1, rouge2 in row) for row in overlaps]
    scorer = make_scorer(stem=True, metrics=["rougeLsum"])
    best, best_total = -1, -1.0
    for i in sorted(range(len(texts)), key=bounds.__getitem__, reverse=True):
        others = texts[:i] + texts[i + 1 :]
        total = bounds[i]
        for (rouge1, _), other in zip(overlaps[i], others, strict=True):
            if total <= best_total:
                break
            total += scorer.score(other, texts[i])["rougeLsum"].fmeasure - rouge1
        if total > best_total:
            best, best_total = i, total
    compared = len(documents) - 1
    return Constant(documents[best], best_total / compared, compared)


_Ngrams = tuple[Counter[str], Counter[tuple[str, str]]]


def _ngrams(tokens: list[str]) -> _Ngrams:
    return Counter(tokens), Counter(zip(tokens, tokens[1:], strict=False))


def _overlap(ngrams: Sequence[_Ngrams], i: int, j: int) -> tuple[float, float]:
    """Return ROUGE-1 F and ROUGE-2 F (the same both ways round)."""
    (unigrams, bigrams), (other_unigrams, other_bigrams) = ngrams[i], ngrams[j]
    return _f(unigrams, other_unigrams), _f(bigrams, other_bigrams)


def _f(counts: Counter[Any], others: Counter[Any]) -> float:
    return 2 * (counts & others).total() / max(counts.total() + others.total(), 1)
