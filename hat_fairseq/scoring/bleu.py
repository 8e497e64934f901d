"""BLEU of translated documents (document and sentence level) and chrF2; sacrebleu computes every figure.

Document BLEU (Rohde et al. 2021, section 4.2): everything generated for a document is one string, and corpus BLEU is
computed over these strings, so an n-gram may cross the end of a segment or of a chunk, and segments need not be
aligned.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from hat_fairseq.scoring.bleu_settings import BleuSettings, make_bleu

DOCUMENT_BLEU, CHRF2, SENTENCE_BLEU = "document BLEU", "chrF2", "s-BLEU"


@dataclass(frozen=True)
class Translation:
    """A document as one string, and the segments that it consists of; None where they are not known."""

    text: str
    segments: tuple[str, ...] | None


@dataclass(frozen=True)
class Figure:
    """A score (0 to 100); with resampling the mean and half the width of its 95 % interval; the p-value of its
    difference from the first system."""

    score: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None

    def __str__(self) -> str:
        interval = "" if self.mean is None else f" ({self.mean:.2f} ± {self.half_width:.2f})"
        return f"{self.score:.2f}{interval}"


@dataclass(frozen=True)
class BleuReport:
    """The figures of one system.

    Attributes:
        scores: by name; without "s-BLEU" where no document matches.
        documents, segments: of the references.
        unmatched_documents: documents with another number of segments than their reference, or an unknown number;
            s-BLEU leaves them out.
        unmatched_segments: the references' segments in these.
        empty_hypotheses: documents for which nothing was generated.
        without_segments: documents whose segments are not known.
        same_as_first: the texts are those of the first system, so there is nothing to test.
    """

    scores: dict[str, Figure]
    documents: int
    segments: int
    unmatched_documents: int
    unmatched_segments: int
    empty_hypotheses: int
    without_segments: int
    same_as_first: bool


def bleu(
    systems: Mapping[str, Sequence[Translation]],
    references: Sequence[Sequence[str]],
    settings: BleuSettings,
    more_references: Sequence[Sequence[Sequence[str]]] | None = None,
) -> tuple[dict[str, BleuReport], dict[str, str]]:
    """Scores systems; from the second on, with p-values against the first (paired bootstrap over documents).

    Args:
        systems: by name, the documents in the references' order.
        references: the segments of each document.
        more_references: further references of each document; sacrebleu takes all.

    Returns:
        The reports by name of system, and sacrebleu's signatures by name of score.

    Raises:
        ValueError: no document, differing numbers of documents, an empty reference.
    """
    every = [[first, *more] for first, more in zip(references, more_references or [()] * len(references), strict=True)]
    whole = [[" ".join(segments).strip() for segments in each] for each in every]
    _check(systems, whole)
    texts = {name: [document.text for document in documents] for name, documents in systems.items()}
    first = next(iter(texts), None)
    figures, signatures = _document_figures(texts, _streams(whole), settings)
    sentence_metric = make_bleu(settings)
    reports = {}
    for name, documents in systems.items():
        known = [document.segments for document in documents]
        # of the matching documents: the references of each segment
        matching = [_of_segments(segments, each) for segments, each in zip(known, every, strict=True)]
        scores = {metric: figures[metric][name] for metric in figures}
        matched = [
            segment for segments, each in zip(known, matching, strict=True) if each for segment in segments or ()
        ]
        if matched:
            expected = _streams([each for segments in matching for each in segments])
            scores[SENTENCE_BLEU] = Figure(sentence_metric.corpus_score(matched, expected).score)
            signatures[SENTENCE_BLEU] = str(sentence_metric.get_signature())
        unmatched = [first for first, each in zip(references, matching, strict=True) if not each]
        reports[name] = BleuReport(
            scores=scores,
            documents=len(references),
            segments=sum(map(len, references)),
            unmatched_documents=len(unmatched),
            unmatched_segments=sum(map(len, unmatched)),
            empty_hypotheses=sum(not text.strip() for text in texts[name]),
            without_segments=known.count(None),
            same_as_first=first is not None and name != first and texts[name] == texts[first],
        )
    return reports, signatures


def _of_segments(segments: Sequence[str] | None, references: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The references of each segment, from the references that have as many segments; nothing without such."""
    if segments is None:
        return []
    return list(zip(*(other for other in references if len(other) == len(segments)), strict=True))


def _streams(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The references of each text as sacrebleu takes them: the first of all texts, then the second, None for none."""
    return [list(stream) for stream in zip_longest(*references)]


def _check(systems: Mapping[str, Sequence[Translation]], references: Sequence[Sequence[str]]) -> None:
    if not references:
        raise ValueError("no documents to score")
    for number, each in enumerate(references, start=1):
        if "" in each:
            raise ValueError(f"reference {number} is empty: a translation of nothing cannot be scored")
    for name, documents in systems.items():
        if len(documents) != len(references):
            raise ValueError(f"{name}: {len(documents)} hypotheses, but {len(references)} references")


def _document_figures(
    systems: Mapping[str, Sequence[str]], references: list[list[Any]], settings: BleuSettings
) -> tuple[dict[str, dict[str, Figure]], dict[str, str]]:
    """The figures over whole documents by metric and system, and the metrics' signatures."""
    from sacrebleu.metrics import CHRF
    from sacrebleu.significance import PairedTest

    metrics = {DOCUMENT_BLEU: make_bleu(settings), CHRF2: CHRF(lowercase=settings.lowercase)}
    if not settings.bootstrap_samples:
        plain = {
            metric: {name: Figure(scorer.corpus_score(texts, references).score) for name, texts in systems.items()}
            for metric, scorer in metrics.items()
        }
        return plain, {metric: str(scorer.get_signature()) for metric, scorer in metrics.items()}
    samples = settings.bootstrap_samples
    with _sacrebleu_seed(settings.seed):
        test = PairedTest(list(systems.items()), metrics, references, test_type="bs", n_samples=samples)
        found_signatures, found = test()
    first = next(iter(systems.values()))
    same = {name: texts == first for name, texts in systems.items()}
    figures, signatures = {}, {}
    for metric, theirs in ((DOCUMENT_BLEU, "BLEU"), (CHRF2, "chrF2")):
        results: dict[str, Any] = dict(zip(systems, found[theirs], strict=True))
        figures[metric] = {
            # The test would find a system that equals the first one significantly different from it.
            name: Figure(result.score, float(result.mean), float(result.ci), None if same[name] else result.p_value)
            for name, result in results.items()
        }
        signatures[metric] = str(found_signatures[theirs])
    return figures, signatures


@contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacrebleu takes its seed from the environment only."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before
