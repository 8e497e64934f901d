"""ROUGE-1, ROUGE-2 and summary-level ROUGE-L (Lin 2004): F x 100 with intervals over documents and a signature."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from hat_fairseq.scoring.report import Interval, bootstrap_mean
from hat_fairseq.scoring.rouge_settings import RougeSettings, split_summary

METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L (summary)"}
OTHERS = 19  # mismatched references of a summary: enough for a steady mean, and linear in the number of documents

Summary = str | Sequence[str]


@dataclass(frozen=True)
class RougeReport:
    """The scores of one system."""

    scores: dict[str, Interval]  # from `METRICS`' keys to F x 100
    signature: str
    documents: int
    empty_hypotheses: int  # documents without any generated word (they score 0 and are part of the mean)
    repeated_trigrams: float  # of the hypotheses, see `repeated_ngrams`
    repeated_in_references: float
    non_ascii_documents: int  # documents with letters or digits that ROUGE's tokenizer (a-z, 0-9) drops


def rouge(
    hypotheses: Sequence[Summary], references: Sequence[Sequence[Summary]], settings: RougeSettings | None = None
) -> RougeReport:
    """Scores summaries (a text or its sentences) against the references of each document, in the same order.

    ValueError for several references with the Perl backend, no documents, or a reference without a word for ROUGE.
    """
    settings = settings or RougeSettings()
    hypothesis_lines = [split_summary(summary, settings.hypothesis_sentences) for summary in hypotheses]
    reference_lines = [
        [split_summary(summary, settings.reference_sentences) for summary in of_document] for of_document in references
    ]
    _check_references(reference_lines)
    counts = np.array([len(lines) for lines in reference_lines])
    flat = [lines for of_document in reference_lines for lines in of_document]
    if settings.backend == "perl":
        if counts.sum() > len(counts):
            raise ValueError("the perl backend takes one reference per document; use --backend rouge-score for several")
        from hat_fairseq.scoring import perl

        scores, backend = perl.score(hypothesis_lines, flat, settings)
    else:
        repeated = [lines for lines, count in zip(hypothesis_lines, counts, strict=True) for _ in range(count)]
        scores = {}
        for metric, values in score_documents(repeated, flat, settings.stem).items():
            values = _of_documents(values, counts, settings.several_references)
            scores[metric] = bootstrap_mean(100 * values, settings.bootstrap_samples, settings.seed)
        backend = f"rouge-score {version('rouge-score')}"
    return RougeReport(
        scores=scores,
        signature=settings.signature(backend, len(references), len(flat)),
        documents=len(references),
        empty_hypotheses=sum(not _has_word(lines) for lines in hypothesis_lines),
        repeated_trigrams=repeated_ngrams(map(" ".join, hypothesis_lines)),
        repeated_in_references=repeated_ngrams(map(" ".join, flat)),
        non_ascii_documents=sum(
            any(_NON_ASCII_WORD.search(line) for lines in (hypothesis, *of_document) for line in lines)
            for hypothesis, of_document in zip(hypothesis_lines, reference_lines, strict=True)
        ),
    )


def repeated_ngrams(texts: Iterable[str], n: int = 3) -> float:
    """seq-rep-n of Welleck et al. 2020 in percent: the mean over texts of 1 - (different n-grams / n-grams) of words.

    0 for a text of less than n words; words are divided by spaces and compared in lower case.
    """
    shares = []
    for text in texts:
        words = text.lower().split()
        ngrams = list(zip(*(words[start:] for start in range(n)), strict=False))
        shares.append(1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0)
    return 100 * sum(shares) / len(shares)


def _of_documents(values: np.ndarray, counts: np.ndarray, several: str) -> np.ndarray:
    """(references,) scores -> (documents,) the best or the mean of each document's `counts` references."""
    first = np.cumsum(counts) - counts
    return np.maximum.reduceat(values, first) if several == "best" else np.add.reduceat(values, first) / counts


def score_against_others(
    hypotheses: Sequence[Summary], references: Sequence[Sequence[Summary]], settings: RougeSettings
) -> dict[str, float]:
    """Mean F x 100 of every summary against the first references of the next `OTHERS` documents (going round).

    Where documents are alike, a summary that fits any of them scores well. The drop against mismatched references shows
    how much of the score is specific to the document. ValueError for a single document.
    """
    if len(references) < 2:
        raise ValueError("one document alone cannot be scored against others")
    own = [split_summary(summary, settings.hypothesis_sentences) for summary in hypotheses]
    lines = [split_summary(summary, settings.reference_sentences) for summary, *_ in references]
    shifts = range(1, min(OTHERS, len(lines) - 1) + 1)
    rotated = [reference for shift in shifts for reference in (*lines[shift:], *lines[:shift])]
    scores = score_documents(own * len(shifts), rotated, settings.stem)
    return {metric: 100 * float(scores[metric].mean()) for metric in METRICS}


def score_documents(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], stem: bool
) -> dict[str, np.ndarray]:
    """F in [0, 1] of each document, (documents,), by metric; hypotheses and references are lists of sentences."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(METRICS), tokenizer=make_tokenizer(stem))
    scores = [
        scorer.score("\n".join(reference), "\n".join(hypothesis))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return {metric: np.array([score[metric].fmeasure for score in scores]) for metric in METRICS}


@cache
def make_tokenizer(stem: bool) -> Any:
    """An object whose `tokenize(text)` gives rouge-score's tokens; each word is stemmed only once."""
    from nltk.stem.porter import PorterStemmer
    from rouge_score import tokenize
    from rouge_score.tokenizers import Tokenizer

    class Stemmer:
        stem = staticmethod(cache(PorterStemmer().stem))

    class RememberingTokenizer(Tokenizer):
        def tokenize(self, text: str) -> list[str]:
            return tokenize.tokenize(text, Stemmer if stem else None)

    return RememberingTokenizer()


_ASCII_WORD = re.compile(r"[A-Za-z0-9]")
_NON_ASCII_WORD = re.compile(r"[^\W_a-zA-Z0-9]")


def _has_word(lines: Sequence[str]) -> bool:
    return any(_ASCII_WORD.search(line) for line in lines)


def _check_references(references: Sequence[Sequence[Sequence[str]]]) -> None:
    if not references:
        raise ValueError("no documents to score")
    for number, lines in ((number, lines) for number, each in enumerate(references, start=1) for lines in each):
        if not _has_word(lines):
            start = repr(" ".join(lines)[:80])
            raise ValueError(f"reference {number} has no word that ROUGE can score (letters a-z or digits): {start}")
