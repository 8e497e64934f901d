"""BLEU of translated documents (document and sentence level) and chrF2; sacrebleu computes every figure.

Document BLEU (Rohde et al. 2021, section 4.2): everything generated for a document is one string, and corpus BLEU is
computed over these strings, so an n-gram may cross the end of a segment or of a chunk, and segments need not be
aligned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    systems: Mapping[str, Sequence[Translation]], references: Sequence[Sequence[str]], settings: BleuSettings
) -> tuple[dict[str, BleuReport], dict[str, str]]:
    """Scores systems; from the second on, with p-values against the first (paired bootstrap over documents).

    Args:
        systems: by name, the documents in the references' order.
        references: the segments of each document.

    Returns:
        The reports by name of system, and sacrebleu's signatures by name of score.

    Raises:
        ValueError: no document, differing numbers of documents, an empty reference.
    """
    whole = [" ".join(segments).strip() for segments in references]
    _check(systems, whole)
    texts = {name: [document.text for document in documents] for name, documents in systems.items()}
    first = next(iter(texts), None)
    figures, signatures = _document_figures(texts, whole, settings)
    sentence_metric = make_bleu(settings)
    num_segments = sum(map(len, references))
    reports = {}
    for name, documents in systems.items():
        known = [document.segments for document in documents]
        pairs = [(a, b) for a, b in zip(known, references, strict=True) if a is not None and len(a) == len(b)]
        scores = {metric: figures[metric][name] for metric in figures}
        if pairs:
            hypotheses = [segment for generated, _ in pairs for segment in generated]
            expected = [segment for _, segments in pairs for segment in segments]
            scores[SENTENCE_BLEU] = Figure(sentence_metric.corpus_score(hypotheses, [expected]).score)
            signatures[SENTENCE_BLEU] = str(sentence_metric.get_signature())
        reports[name] = BleuReport(
            scores=scores,
            documents=len(references),
            segments=num_segments,
            unmatched_documents=len(references) - len(pairs),
            unmatched_segments=num_segments - sum(len(segments) for _, segments in pairs),
            empty_hypotheses=sum(not text.strip() for text in texts[name]),
            without_segments=known.count(None),
            same_as_first=first is not None and name != first and texts[name] == texts[first],
        )
    return reports, signatures


def _check(systems: Mapping[str, Sequence[Translation]], references: Sequence[str]) -> None:
    if not references:
        raise ValueError("no documents to score")
    if "" in references:
        raise ValueError(f"reference {references.index('') + 1} is empty: a translation of nothing cannot be scored")
    for name, documents in systems.items():
        if len(documents) != len(references):
            raise ValueError(f"{name}: {len(documents)} hypotheses, but {len(references)} references")


def _document_figures(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], settings: BleuSettings
) -> tuple[dict[str, dict[str, Figure]], dict[str, str]]:
    """The figures over whole documents by metric and system, and the metrics' signatures."""
    from sacrebleu.metrics import CHRF
    from sacrebleu.significance import PairedTest

    metrics = {DOCUMENT_BLEU: make_bleu(settings), CHRF2: CHRF(lowercase=settings.lowercase)}
    if not settings.bootstrap_samples:
        plain = {
            metric: {name: Figure(scorer.corpus_score(texts, [references]).score) for name, texts in systems.items()}
            for metric, scorer in metrics.items()
        }
        return plain, {metric: str(scorer.get_signature()) for metric, scorer in metrics.items()}
    samples = settings.bootstrap_samples
    with _sacrebleu_seed(settings.seed):
        test = PairedTest(list(systems.items()), metrics, [references], test_type="bs", n_samples=samples)
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
