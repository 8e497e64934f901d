"""Write two baselines that any model has to beat: the lead of each document, and the best constant summary."""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hat_fairseq.data.outputs import check_output
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import write_summaries
from hat_fairseq.scoring.rouge import make_tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", required=True, metavar="FILE", help="the documents to summarize (.jsonl)")
    parser.add_argument("--train", required=True, metavar="FILE", help="the training documents with targets (.jsonl)")
    parser.add_argument("--out", required=True, metavar="DIR", help="receives lead.jsonl and constant.jsonl")
    parser.add_argument("--overwrite", action="store_true", help="replace these two files")
    parser.add_argument("--words", type=int, help="length of the lead (default: mean of the training summaries)")
    text = "take the constant from at most N random training summaries (default: %(default)s)"
    parser.add_argument("--candidates", type=int, default=200, metavar="N", help=text)
    parser.add_argument("--seed", type=int, default=0, help="of that choice (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Writes both files and prints how they were made."""
    documents = list(read_records(args.documents))
    train = [document for document in read_records(args.train) if document.target]
    if not train:
        raise ValueError(f"{args.train}: no document has a target")
    words = mean_words(train) if args.words is None else args.words
    if words < 1:
        raise ValueError(f"--words must be at least 1, not {words}")
    candidates = train
    if len(train) > args.candidates:
        candidates = random.Random(args.seed).sample(train, args.candidates)
    constant, score = best_constant(candidates)
    out = Path(args.out)
    for name in ("lead.jsonl", "constant.jsonl"):
        check_output(out / name, args.overwrite, [args.documents, args.train])
    write_summaries(out / "lead.jsonl", ({"id": doc.id, "text": lead(doc, words)} for doc in documents))
    summary = "\n".join(constant.target or ())  # a line for each sentence
    write_summaries(out / "constant.jsonl", ({"id": doc.id, "text": summary} for doc in documents))
    print(f"lead.jsonl: the first {words} words of each of {len(documents)} documents")
    print(
        f"constant.jsonl: the summary of training document {constant.id!r}, the nearest of {len(candidates)} (of "
        f"{len(train)} in training) to the {len(candidates) - 1} others: mean sum of ROUGE-1 and 2 {100 * score:.2f}"
    )
    return 0


def lead(document: Record, words: int) -> str:
    """The first `words` white-space separated words of the source, without roles, as running text."""
    text = document.text if document.text is not None else " ".join(document.sentences or ())
    return " ".join(text.split()[:words])


def mean_words(documents: Sequence[Record]) -> int:
    """The mean number of words of the targets, rounded down."""
    return sum(len(sentence.split()) for doc in documents for sentence in doc.target or ()) // len(documents)


def best_constant(documents: Sequence[Record]) -> tuple[Record, float]:
    """The document whose target is nearest to all others, and its mean ROUGE-1 F + ROUGE-2 F (stemmed, 0 to 2).

    Raises:
        ValueError: fewer than two documents.
    """
    if len(documents) < 2:
        raise ValueError(f"choosing a constant summary takes at least 2 training summaries, not {len(documents)}")
    tokenizer = make_tokenizer(stem=True)
    words = [tokenizer.tokenize("\n".join(document.target or ())) for document in documents]
    ngrams = [(Counter(text), Counter(zip(text, text[1:], strict=False))) for text in words]
    sums = [sum(_similarity(own, other) for other in ngrams if other is not own) for own in ngrams]
    best = max(range(len(documents)), key=sums.__getitem__)
    return documents[best], sums[best] / (len(documents) - 1)


def _similarity(own: Sequence[Counter[Any]], other: Sequence[Counter[Any]]) -> float:
    """ROUGE-1 F + ROUGE-2 F of two texts, from the counts of their words and of their pairs of words."""
    return sum(2 * (a & b).total() / max(a.total() + b.total(), 1) for a, b in zip(own, other, strict=True))
