"""BLEU of translated documents (document and sentence level) and chrF2; sacrebleu computes every figure.

Document BLEU (Rohde et al. 2021, section 4.2): everything generated for a document is one string, and corpus BLEU is
computed over these strings, so an n-gram may cross the end of a segment or of a chunk, and segments need not be
aligned.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from ..data.word_tokenizer import join_sentences

DOCUMENT_BLEU, CHRF2, SENTENCE_BLEU = "document BLEU", "chrF2", "s-BLEU"


@dataclass(frozen=True)
class BleuSettings:
    """Everything besides the texts that the figures depend on."""

    tokenize: str | None = None  # sacrebleu's name, e.g. 13a, zh, intl, char; None for that of the language
    lowercase: bool = False  # compare in lower case
    bootstrap_samples: int = 1000  # test sets of resampled documents behind intervals and p-values; 0 for neither
    seed: int = 12345  # of the resampling; sacrebleu takes 0 for "no seed"
    language: str = "en"  # ISO 639-1 code of the texts


@dataclass(frozen=True)
class Translation:
    """A document as one string, and the segments that it consists of; None where they are not known."""

    text: str
    segments: tuple[str, ...] | None


@dataclass(frozen=True)
class Figure:
    """A score (0 to 100), the mean and half width of its 95 % interval, and the p-value against the first system."""

    score: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None

    def __str__(self) -> str:
        interval = "" if self.mean is None else f" ({self.mean:.2f} ± {self.half_width:.2f})"
        return f"{self.score:.2f}{interval}"


@dataclass(frozen=True)
class BleuReport:
    """The figures of one system."""

    scores: dict[str, Figure]  # by name; without "s-BLEU" where no document matches
    documents: int
    segments: int  # of the first references
    unmatched_documents: int  # those without a reference of as many segments; s-BLEU leaves them out
    unmatched_segments: int  # the first references' segments in these
    empty_hypotheses: int  # documents for which nothing was generated
    without_segments: int  # documents whose segments are not known
    same_as_first: bool  # the texts are those of the first system, so there is nothing to test


def bleu(
    systems: Mapping[str, Sequence[Translation]], references: Sequence[Sequence[Sequence[str]]], settings: BleuSettings
) -> tuple[dict[str, BleuReport], dict[str, str]]:
    """Scores systems; from the second on, with p-values against the first (paired bootstrap over documents).

    Args:
        systems: by name, the documents in the references' order.
        references: of each document one or more, each as its segments; none is empty. sacrebleu takes all.

    Returns:
        The reports by name of system, and sacrebleu's signatures by name of score.
    """
    whole = [[join_sentences(segments, settings.language).strip() for segments in each] for each in references]
    if not references:
        raise ValueError("no documents to score")
    if number := next((number for number, each in enumerate(whole, start=1) if "" in each), None):
        raise ValueError(f"reference {number} is empty: a translation of nothing cannot be scored")
    texts = {name: [document.text for document in documents] for name, documents in systems.items()}
    first = next(iter(texts))
    same = {name for name in texts if texts[name] == texts[first]}
    figures, signatures = _document_figures(texts, _streams(whole), settings, same)
    sentence_metric = make_bleu(settings)
    num_segments = [len(each[0]) for each in references]
    reports = {}
    for name, documents in systems.items():
        scores = {metric: figures[metric][name] for metric in figures}
        matching = [_of_segments(document.segments, each) for document, each in zip(documents, references, strict=True)]
        if any(matching):
            segments, expected = zip(*chain.from_iterable(matching), strict=True)
            scores[SENTENCE_BLEU] = Figure(sentence_metric.corpus_score(segments, _streams(expected)).score)
            signatures[SENTENCE_BLEU] = str(sentence_metric.get_signature())
        unmatched = [number for number, found in zip(num_segments, matching, strict=True) if not found]
        reports[name] = BleuReport(
            scores=scores,
            documents=len(references),
            segments=sum(num_segments),
            unmatched_documents=len(unmatched),
            unmatched_segments=sum(unmatched),
            empty_hypotheses=sum(not text.strip() for text in texts[name]),
            without_segments=sum(document.segments is None for document in documents),
            same_as_first=name != first and name in same,
        )
    return reports, signatures


def make_bleu(settings: BleuSettings, force: bool = False) -> Any:
    """sacrebleu's metric BLEU, with `force` without warning of tokenised text; ValueError for an unusable tokenizer."""
    from sacrebleu.metrics import BLEU

    if settings.tokenize not in (None, *BLEU.TOKENIZERS):
        raise ValueError(f"unknown tokenizer {settings.tokenize!r} (sacrebleu's are: {', '.join(BLEU.TOKENIZERS)})")
    try:
        language = "" if settings.tokenize else settings.language  # with both it warns
        return BLEU(tokenize=settings.tokenize, trg_lang=language, lowercase=settings.lowercase, force=force)
    except (RuntimeError, ImportError) as error:
        package = re.search(r"pip install (\S+)", str(error))
        name = f"{settings.tokenize!r}" if settings.tokenize else f"of the language {settings.language!r}"
        needed = f"the package {package[1]}: pip install '{package[1]}'" if package else " ".join(str(error).split())
        raise ValueError(f"sacrebleu's tokenizer {name} needs {needed}, or choose another with --tokenize") from error


def _of_segments(segments: Sequence[str] | None, references: Sequence[Sequence[str]]) -> list[tuple[str, Any]]:
    """Each segment with its references, from those that have as many segments; nothing without such."""
    matching = [other for other in references if segments is not None and len(other) == len(segments)]
    return list(zip(segments or (), zip(*matching, strict=True), strict=True)) if matching else []


def _streams(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The references of each text as sacrebleu takes them: the first of all texts, then the second, None for none."""
    return [list(stream) for stream in zip_longest(*references)]


def _document_figures(
    systems: Mapping[str, Sequence[str]], references: list[list[Any]], settings: BleuSettings, same: set[str]
) -> tuple[dict[str, dict[str, Figure]], dict[str, str]]:
    """The figures over whole documents by metric and system, and the metrics' signatures.

    Systems that are the `same` as the first get no p-value: the test would find them significantly different from it.
    """
    from sacrebleu.metrics import CHRF
    from sacrebleu.significance import PairedTest

    metrics = {DOCUMENT_BLEU: make_bleu(settings), CHRF2: CHRF(lowercase=settings.lowercase)}
    if not (samples := settings.bootstrap_samples):
        plain = {
            metric: {name: Figure(scorer.corpus_score(texts, references).score) for name, texts in systems.items()}
            for metric, scorer in metrics.items()
        }
        return plain, {metric: str(scorer.get_signature()) for metric, scorer in metrics.items()}
    with _sacrebleu_seed(settings.seed):
        test = PairedTest(list(systems.items()), metrics, references, test_type="bs", n_samples=samples)
        found_signatures, found = test()
    figures, signatures = {}, {}
    for metric, theirs in ((DOCUMENT_BLEU, "BLEU"), (CHRF2, "chrF2")):
        results: dict[str, Any] = dict(zip(systems, found[theirs], strict=True))
        figures[metric] = {
            name: Figure(result.score, float(result.mean), float(result.ci), None if name in same else result.p_value)
            for name, result in results.items()
        }
        signatures[metric] = str(found_signatures[theirs])
    return figures, signatures


@contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacrebleu takes its seed from the environment only."""
    before = os.environ.copy()
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        del os.environ["SACREBLEU_SEED"]
        os.environ.update(before)
