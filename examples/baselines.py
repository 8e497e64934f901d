#!/usr/bin/env python3
"""Write two baselines that any model has to beat: the lead of each document, and the best constant summary.

    python examples/baselines.py data-bin/mine/text/test.jsonl data-bin/mine/text/train.jsonl results/mine [WORDS]

`lead.jsonl` has the first words of each document (as many as the mean training summary, or WORDS), `constant.jsonl` the
training summary that is most similar to others by ROUGE-1 and ROUGE-2, of at most 200 random ones. Neither depends on
the references of the test part. Files of an earlier run are replaced.
"""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import write_summaries
from hat_fairseq.scoring.rouge import make_tokenizer

CANDIDATES = 200


def main(documents: str, train: str, out: str, words: str = "") -> None:
    summaries = [document for document in read_records(train) if document.target]
    if len(summaries) < 2:
        raise ValueError(f"{train} has {len(summaries)} documents with a target; at least two are needed")
    lengths = [len(sentence.split()) for document in summaries for sentence in document.target or ()]
    num_words = int(words or sum(lengths) // len(summaries))
    if num_words < 1:
        raise ValueError(f"WORDS must be at least 1, not {num_words}")
    number = min(CANDIDATES, len(summaries))
    constant, score = best_constant(random.Random(0).sample(summaries, number) if number == CANDIDATES else summaries)
    text = "\n".join(constant.target or ())  # a line for each sentence
    leads = {document.id: lead(document, num_words) for document in read_records(documents)}
    write_summaries(f"{out}/lead.jsonl", ({"id": name, "text": each} for name, each in leads.items()))
    write_summaries(f"{out}/constant.jsonl", ({"id": name, "text": text} for name in leads))
    print(f"lead.jsonl: the first {num_words} words of each of {len(leads)} documents")
    nearest = (
        f"the nearest of {number} (of {len(summaries)}) to the others: mean sum of ROUGE-1 and 2 {100 * score:.2f}"
    )
    print(f"constant.jsonl: the summary of training document {constant.id!r}, {nearest}")


def lead(document: Record, words: int) -> str:
    """The first `words` white-space separated words of the source, without roles, as running text."""
    text = document.text if document.text is not None else " ".join(document.elements or ())
    return " ".join(text.split()[:words])


def best_constant(documents: Sequence[Record]) -> tuple[Record, float]:
    """The document whose target is nearest to all others, and its mean ROUGE-1 F + ROUGE-2 F (stemmed, 0 to 2)."""
    tokenizer = make_tokenizer(stem=True)
    words = [tokenizer.tokenize("\n".join(document.target or ())) for document in documents]
    ngrams = [(Counter(text), Counter(zip(text, text[1:], strict=False))) for text in words]
    sums = [sum(_similarity(own, other) for other in ngrams if other is not own) for own in ngrams]
    best = max(range(len(documents)), key=sums.__getitem__)
    return documents[best], sums[best] / (len(documents) - 1)


def _similarity(own: Sequence[Counter[Any]], other: Sequence[Counter[Any]]) -> float:
    """ROUGE-1 F + ROUGE-2 F of two texts, from the counts of their words and of their pairs of words."""
    return sum(2 * (a & b).total() / max(a.total() + b.total(), 1) for a, b in zip(own, other, strict=True))


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        sys.exit("usage: baselines.py DOCUMENTS TRAIN OUT [WORDS]")
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
