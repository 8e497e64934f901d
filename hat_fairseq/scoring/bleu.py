"""BLEU of translated documents (document and sentence level) and chrF2; sacrebleu computes every figure.

Document BLEU (Rohde et al. 2021, section 4.2): everything generated for a document is one string, and corpus BLEU is
computed over these strings, so an n-gram may cross the end of a segment or of a chunk, and segments need not be
aligned.
"""

import argparse
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from hat_fairseq.data.language import base_language, has_spaces, language_of_texts, parse_code
from hat_fairseq.data.pipeline import recorded_language
from hat_fairseq.data.text import join_sentences, shown, visible_characters
from hat_fairseq.scoring.files import DocumentTexts, Summary, read_hypotheses, read_references
from hat_fairseq.scoring.marks import notes_on_marks
from hat_fairseq.scoring.report import Output, Report, Signature, check_counts, is_alone, least_p_value

DOCUMENT_BLEU, CHRF2, SENTENCE_BLEU = "document BLEU", "chrF2", "s-BLEU"

FEW = 10  # documents whose least p-value is above that of 1,000 resampled test sets

CHARACTERS = "char"  # sacrebleu's tokenizer for words without spaces between them
#: Its other tokenizers by language: sacrebleu's name, and the module that it needs.
TOKENIZERS = {"zh": ("zh", "sacrebleu"), "ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}


@dataclass(frozen=True)
class BleuSettings:
    """Everything besides the texts that the figures depend on."""

    tokenize: str | None = None  # sacrebleu's name, e.g. 13a, zh, intl, char; None for that of the language
    lowercase: bool = False  # compare in lower case
    bootstrap_samples: int = 1000  # test sets of resampled documents for intervals and p-values; 0 for neither
    seed: int = 12345  # of the resampling; sacrebleu takes 0 for "no seed"
    language: str = "en"  # of the texts, a code of BCP 47


class Translation(NamedTuple):
    """A document as one string, and the segments that it consists of; None where they are not known."""

    text: str
    segments: Sequence[str] | None


@dataclass(frozen=True)
class Figure:
    """A score (0 to 100), the mean and half width of its 95 % interval, and the p-value against the first system.

    The latter is at least `least_p_value` of the documents in which the two systems differ.
    """

    score: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None

    def __str__(self) -> str:
        return f"{self.score:.2f}" + ("" if self.mean is None else f" ({self.mean:.2f} ± {self.half_width:.2f})")


@dataclass(frozen=True, kw_only=True)
class BleuReport(Report):
    """The figures of one system by name, without "s-BLEU" where no document matches, and sacrebleu's signatures."""

    documents: int
    segments: int  # of the first references
    unmatched_documents: int  # those without a reference of as many segments; s-BLEU leaves them out
    unmatched_segments: int  # the first references' segments in these
    empty_hypotheses: int  # documents for which nothing was generated
    without_segments: int  # documents whose segments are not known
    same_as_first: bool  # the texts are those of the first system, so there is nothing to test
    different: int  # documents whose text is not that of the first system


def bleu(
    hypotheses: Sequence[Summary | Translation],
    references: Sequence[str | Sequence[Summary]],
    *,
    tokenize: str | None = None,
    lowercase: bool = False,
    language: str | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 12345,
) -> BleuReport:
    """Computes document BLEU, chrF2 and s-BLEU of translated documents; `compare` does so for several systems.

    Args:
        hypotheses: of each document its text, or a list of its segments, which s-BLEU needs.
        references: of each document a text with a segment a line, or a list of references; one of these is such a text
            or a list of segments.
        tokenize: name of a tokenizer of sacrebleu, e.g. 13a, zh, intl, char; None for that of the language.
        lowercase: compare in lower case.
        language: of the texts, a code of BCP 47; None for what the script of the references says.
        bootstrap_samples: test sets of resampled documents for the intervals; 0 for no intervals.
        seed: of the resampling, 1 at least: sacrebleu takes 0 for "no seed".

    Raises:
        ValueError: other numbers of hypotheses than of references, no documents, an empty reference, or an unknown
            language or tokenizer.
    """
    options: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase, "language": language}
    (report,) = compare(
        {"": hypotheses}, references, bootstrap_samples=bootstrap_samples, seed=seed, **options
    ).values()
    return report


def compare(
    systems: Mapping[str, Sequence[Summary | Translation]],
    references: Sequence[str | Sequence[Summary]],
    *,
    tokenize: str | None = None,
    lowercase: bool = False,
    language: str | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 12345,
) -> dict[str, BleuReport]:
    """Returns the reports of systems by their names, with p-values of the differences from the first system.

    The p-values are those of sacrebleu's paired bootstrap; the other arguments, and errors, are those of `bleu`.
    """
    for hypotheses in systems.values():
        check_counts(hypotheses=hypotheses, references=references)
    if seed < 1:
        raise ValueError(f"the seed must be at least 1, not {seed}")
    settings = BleuSettings(tokenize, lowercase, bootstrap_samples, seed, parse_code(language or BleuSettings.language))
    segments = [_segments_of(each) for each in references]
    if language is None:
        settings, _ = settings_by_script(settings, (line for each in segments for text in each for line in text))
    translations = {
        name: [_translation(document, settings.language) for document in documents]
        for name, documents in systems.items()
    }
    return _compare(translations, segments, settings)


def _translation(document: Summary | Translation, language: str) -> Translation:
    if isinstance(document, Translation):
        return document
    if isinstance(document, str):
        return Translation(document, None)
    return Translation(join_sentences(document, language), document)


def _segments_of(references: str | Sequence[Summary]) -> list[Sequence[str]]:
    """The segments of each reference of a document."""
    texts = [references] if isinstance(references, str) else references
    return [text.split("\n") if isinstance(text, str) else text for text in texts]


def _compare(
    systems: Mapping[str, Sequence[Translation]], references: Sequence[Sequence[Sequence[str]]], settings: BleuSettings
) -> dict[str, BleuReport]:
    """`references`: of each document one or more, each as its segments."""
    whole = [[join_sentences(segments, settings.language).strip() for segments in each] for each in references]
    if number := next((number for number, each in enumerate(whole, start=1) if not each or not all(each)), None):
        raise ValueError(f"reference {number} is empty: a translation of nothing cannot be scored")
    texts = {name: [shown(document.text) for document in documents] for name, documents in systems.items()}
    first = next(iter(texts))
    figures, signatures = _document_figures(texts, _streams(whole), settings)
    sentence_metric, reports = make_bleu(settings), {}
    for name, documents in systems.items():
        scores, own = {metric: figures[metric][name] for metric in figures}, dict(signatures)
        pairs = [_segment_pairs(document.segments, each) for document, each in zip(documents, references, strict=True)]
        if any(pairs):
            segments, expected = zip(*chain.from_iterable(pairs), strict=True)
            scores[SENTENCE_BLEU] = Figure(sentence_metric.corpus_score(segments, _streams(expected)).score)
            own[SENTENCE_BLEU] = str(sentence_metric.get_signature())
        unmatched = [len(each[0]) for each, matching in zip(references, pairs, strict=True) if not matching]
        reports[name] = BleuReport(
            scores=scores,
            signature=Signature(own),
            documents=len(references),
            segments=sum(len(each[0]) for each in references),
            unmatched_documents=len(unmatched),
            unmatched_segments=sum(unmatched),
            empty_hypotheses=texts[name].count(""),
            without_segments=sum(document.segments is None for document in documents),
            same_as_first=name != first and texts[name] == texts[first],
            different=count_different(texts[name], texts[first]),
        )
    return reports


def count_different(texts: Sequence[str], others: Sequence[str]) -> int:
    """Counts the documents that have different texts."""
    return sum(text != other for text, other in zip(texts, others, strict=True))


def make_bleu(settings: BleuSettings) -> Any:
    """Makes sacrebleu's BLEU, which does not warn of tokenised text; ValueError for an unusable tokenizer."""
    from sacrebleu.metrics import BLEU

    if settings.tokenize not in (None, *BLEU.TOKENIZERS):
        raise ValueError(f"unknown tokenizer {settings.tokenize!r} (sacrebleu's are: {', '.join(BLEU.TOKENIZERS)})")
    tokenizer = settings.tokenize or tokenizer_of(settings.language)
    try:
        return BLEU(tokenize=tokenizer, lowercase=settings.lowercase, force=True)
    except (RuntimeError, ImportError) as error:
        raise ValueError(f"{' '.join(str(error).split())}, or choose another with --tokenize") from error


def tokenizer_of(code: str) -> str | None:
    """Returns sacrebleu's tokenizer for a language: characters where words have no spaces; None for sacrebleu's own."""
    name, _ = TOKENIZERS.get(base_language(code), (None if has_spaces(code) else CHARACTERS, ""))
    return name


def _segment_pairs(segments: Sequence[str] | None, references: Sequence[Sequence[str]]) -> list[tuple[str, Any]]:
    """Each segment with its references, from those that have as many segments; nothing without such."""
    matching = [map(shown, other) for other in references if segments is not None and len(other) == len(segments)]
    return list(zip(map(shown, segments or ()), zip(*matching, strict=True), strict=True)) if matching else []


def _streams(references: Iterable[Sequence[str]]) -> list[list[Any]]:
    """The references of each text as sacrebleu takes them: the first of all texts, then the second, None for none."""
    return [list(stream) for stream in zip_longest(*references)]


def _document_figures(
    systems: Mapping[str, Sequence[str]], references: list[list[Any]], settings: BleuSettings
) -> tuple[dict[str, dict[str, Figure]], dict[str, str]]:
    """The figures over whole documents by metric and system, and the metrics' signatures.

    Systems that are the same as the first get no p-value: the test would find them significantly different from it.
    """
    from sacrebleu.metrics import CHRF
    from sacrebleu.significance import PairedTest

    metrics = {DOCUMENT_BLEU: make_bleu(settings), CHRF2: CHRF(lowercase=settings.lowercase)}
    figures: dict[str, dict[str, Figure]] = {metric: {} for metric in metrics}
    (first, *_), named = systems.values(), list(systems.items())
    if not settings.bootstrap_samples or is_alone(len(first)):
        for metric, scorer in metrics.items():
            figures[metric] = {n: Figure(scorer.corpus_score(texts, references).score) for n, texts in systems.items()}
        return figures, {metric: str(scorer.get_signature()) for metric, scorer in metrics.items()}
    with sacrebleu_seed(settings.seed):
        test = PairedTest(named, metrics, references, test_type="bs", n_samples=settings.bootstrap_samples)
        signatures, results = test()
    result: Any
    for metric, column in zip(metrics, ("BLEU", "chrF2"), strict=True):  # sacrebleu's names
        for (name, texts), result in zip(named, results[column], strict=True):
            p_value = None
            if texts != first:
                p_value = max(result.p_value, least_p_value(count_different(texts, first)))
            figures[metric][name] = Figure(result.score, float(result.mean), float(result.ci), p_value)
    return figures, dict(zip(metrics, map(str, signatures.values()), strict=True))


@contextmanager
def sacrebleu_seed(seed: int) -> Iterator[None]:
    """Sets the seed where sacrebleu looks for it, the environment, which is as before at the end."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


def settings_by_script(settings: BleuSettings, references: Iterable[str]) -> tuple[BleuSettings, str]:
    """Returns the settings with the tokenizer of the references' script, and a line that says why.

    Chinese, Japanese and Korean need a tokenizer of their own: 13a takes a Chinese sentence for one word. Texts in
    other scripts without spaces, such as Thai, are compared by characters, and so are those of a language whose
    tokenizer's package is missing. The settings stay as they are, and the line is empty, where a tokenizer or a
    language other than the default `en` is stated, and for all other scripts.
    """
    if settings.tokenize or settings.language != BleuSettings.language:
        return settings, ""
    written = language_of_texts(references)
    if written is None:
        return settings, ""
    tokenizer, module = TOKENIZERS.get(written.code, (CHARACTERS, "sacrebleu"))
    reason = f"{written.share:.0%} of the references' letters are of the {written.name}"
    if find_spec(module) is None:
        tokenizer, reason = CHARACTERS, f"{reason}, and sacrebleu[{written.code}] is not installed"
    settings = replace(settings, tokenize=tokenizer, language=written.code or settings.language)
    return settings, f"tokenizer {tokenizer}: {reason}"


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    text = "use this tokenizer of sacrebleu, e.g. 13a, zh, intl or char (default: that of the language or the script)"
    parser.add_argument("--tokenize", metavar="NAME", help=text)
    text = "the language of the texts, a code of BCP 47 (default: the one that hat preprocess recorded beside the "
    text += "references, unless it is en; else the one that their script shows)"
    parser.add_argument("--language", metavar="CODE", help=text)


def check(args: argparse.Namespace) -> None:
    """Raises ValueError for an unknown language or tokenizer, or one whose package is missing."""
    make_bleu(settings_of(args))


def score(args: argparse.Namespace) -> Output:
    """Returns a row for each system, and the signature of every score."""
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # its paired test reports every step
    settings = settings_of(args)
    make_bleu(settings)  # a missing package is known before the files are read
    references, reason = read_references(args.references), ""
    if not args.language:
        segments = (line for each in references.texts for text in _segments_of(each) for line in text)
        settings, reason = settings_by_script(settings, segments)
    systems = {path: _read_translations(path, references, settings.language) for path in args.hypotheses}
    reports = compare(systems, references.texts, **asdict(settings))
    tested = any(report.scores[CHRF2].p_value is not None for report in reports.values())
    names = [name for metric in (DOCUMENT_BLEU, CHRF2) for name in (metric, "p")[: 1 + tested]]
    rows = [["", *names, SENTENCE_BLEU, "unmatched documents", "unmatched segments"]]
    rows += [[path, *_row(report, tested)] for path, report in reports.items()]
    signatures = {name: each for report in reports.values() for name, each in report.signature.settings.items()}
    lines = [f"{metric}: {signature}" for metric, signature in signatures.items()]
    notes = notes_on_marks(references.path, (text for texts in references.texts for text in texts), False)
    notes += [note for path in systems for note in _notes(path, reports[path], systems[path])]
    rest = {path: {n: value for n, value in asdict(r).items() if n != "signature"} for path, r in reports.items()}
    return Output(rows, lines, [reason] * bool(reason), notes, {"systems": rest, "signatures": signatures})


def settings_of(args: argparse.Namespace) -> BleuSettings:
    """Returns the settings of the options and of the references' pipeline; ValueError for two languages."""
    languages = sorted({base_language(language) for path in args.references if (language := recorded_language(path))})
    if len(languages) > 1 and not args.language:
        raise ValueError(f"the references are of the languages {', '.join(languages)}: choose one with --language")
    language = parse_code(args.language) if args.language else next(iter(languages), BleuSettings.language)
    return BleuSettings(args.tokenize, False, args.bootstrap_samples, args.seed, language)


def _read_translations(path: str, references: DocumentTexts, language: str) -> list[Translation]:
    """A system's documents in the references' order; ValueError if `segments`, joined, are not the `text`."""
    texts = read_hypotheses(path, references)
    parts = read_hypotheses(path, references, ("segments", "text"))
    translations = []
    for number, (text, segments) in enumerate(zip(texts, parts, strict=True)):
        whole = text if isinstance(text, str) else join_sentences(text, language)
        if not isinstance(segments, str) and visible_characters("".join(segments)) != visible_characters(whole):
            raise ValueError(f"{path}: the segments of {references.name(number)}, joined, are not its text")
        translations.append(Translation(whole, None if isinstance(segments, str) else segments))
    return translations


def _row(report: BleuReport, tested: bool) -> list[str]:
    """The cells of a system, with p-values where systems were compared."""
    cells = []
    for figure in (report.scores[DOCUMENT_BLEU], report.scores[CHRF2]):
        cells += [str(figure), *["" if figure.p_value is None else f"{figure.p_value:.4f}"] * tested]
    counts = (report.unmatched_documents, report.documents), (report.unmatched_segments, report.segments)
    shares = [f"{part} of {total} ({100 * part / total:.1f} %)" for part, total in counts]
    return [*cells, str(report.scores.get(SENTENCE_BLEU, "-")), *shares]


def _notes(path: str, report: BleuReport, documents: Sequence[Translation]) -> Iterator[str]:
    """What changes a score unexpectedly. sacrebleu warns of tokenised text only from 100 documents on."""
    yield from notes_on_marks(path, (document.text for document in documents), False)
    if report.empty_hypotheses:
        yield f"{path}: {report.empty_hypotheses} of {report.documents} hypotheses are empty"
    if report.same_as_first:
        yield f"{path}: the same texts as the first system, so no p-value"
    if report.scores[CHRF2].p_value is not None and report.different <= FEW:
        least = f"{least_p_value(report.different):.4f}".rstrip("0").rstrip(".")
        differ = "document differs" if report.different == 1 else "documents differ"
        start = f"{path}: only {report.different} {differ} from the first system's"
        yield f"{start}, so no p-value can be below {least}: score more documents"
    if report.without_segments:
        start = f"{path}: {report.without_segments} of {report.documents} documents have no segments"
        yield f"{start}, which s-BLEU needs: preprocess with --target-separator"
    if 2 * (count := sum(document.text.rstrip().endswith(" .") for document in documents)) > len(documents):
        start = f"{path}: {count} of {len(documents)} documents end in a full stop after a space"
        yield f"{start}: if the texts are tokenised, detokenise them, or BLEU is not comparable"
