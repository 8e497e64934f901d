"""ROUGE-1, ROUGE-2 and summary-level ROUGE-L (Lin 2004): F x 100 with intervals over documents and a signature.

How texts are divided into sentences moves ROUGE-L by up to 7 points, so the signature says it.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from hat_fairseq.data.language import is_other_alphabet, words_of
from hat_fairseq.data.text import is_blank
from hat_fairseq.scoring import perl
from hat_fairseq.scoring.files import Summary, read_hypotheses, read_references
from hat_fairseq.scoring.report import Interval, Report, bootstrap_mean

METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L (summary)"}
OTHERS = 19  # mismatched references of a summary: enough for a steady mean, and linear in the number of documents

_ASCII_WORD = re.compile(r"[A-Za-z0-9]")
_UNICODE_WORD = re.compile(r"[^\W_]")
_NON_ASCII_WORD = re.compile(r"[^\W_a-zA-Z0-9]")

#: ascii: runs of a-z and 0-9, as in ROUGE-1.5.5 and rouge-score; unicode: words of every script, see
#: `hat_fairseq.data.language.words_of`.
WORDS = ("ascii", "unicode")

#: given: the items of a list, or the lines of a text; punctuation, library: as in `hat_fairseq.data.text`;
#: files2rouge: that tool's rule, a sentence ends only at a full stop after a space; none: one sentence.
SENTENCE_METHODS = ("given", "punctuation", "library", "files2rouge", "none")

#: How other tools treat their input when called without options. files2rouge reads one line per document and runs
#: ROUGE-1.5.5 with stemming; rouge-score (and Hugging Face's `evaluate`) takes lines as sentences and does not stem.
PRESETS: dict[str | None, dict[str, Any]] = {
    "files2rouge": {"stem": True, "hypothesis_sentences": "files2rouge", "reference_sentences": "files2rouge"},
    "rouge-score": {"stem": False, "hypothesis_sentences": "given", "reference_sentences": "given"},
}


@dataclass(frozen=True)
class RougeSettings:
    """Settings of ROUGE."""

    backend: str = "rouge-score"  # `rouge-score` (Python) or `perl` (ROUGE-1.5.5)
    stem: bool = True  # compare Porter stems instead of words
    hypothesis_sentences: str = "punctuation"  # one of `SENTENCE_METHODS`
    reference_sentences: str = "given"
    words: str = "ascii"  # one of `WORDS`
    several_references: str = "best"  # a document's score is the best one against its references, or their mean
    bootstrap_samples: int = 1000  # resampled test sets behind the intervals; 0 for none
    seed: int = 0  # of the resampling (the Perl script has its own, fixed)


@dataclass(frozen=True)
class RougeReport:
    """The scores of one system."""

    scores: dict[str, Interval]  # from `METRICS`' keys to F x 100
    signature: str
    documents: int
    empty_hypotheses: int  # documents without any generated word (they score 0 and are part of the mean)
    repeated_trigrams: float  # of the hypotheses, see the function
    repeated_in_references: float
    non_ascii_documents: int  # documents with letters or digits that `words: ascii` drops


def rouge(
    hypotheses: Sequence[Summary], references: Sequence[Sequence[Summary]], settings: RougeSettings | None = None
) -> RougeReport:
    """Scores summaries (a text or its sentences) against the references of each document, in the same order.

    ValueError for several references with the Perl backend, no documents, or a reference without a word for ROUGE.
    """
    settings = settings or RougeSettings()
    hypothesis_lines = [split_summary(summary, settings.hypothesis_sentences) for summary in hypotheses]
    reference_lines = [[split_summary(text, settings.reference_sentences) for text in texts] for texts in references]
    flat = [lines for texts in reference_lines for lines in texts]
    ascii_only = settings.words == "ascii"
    word = _ASCII_WORD if ascii_only else _UNICODE_WORD
    for number, texts in enumerate(reference_lines, start=1):
        if not all(word.search(" ".join(lines)) for lines in texts):
            known = "letters a-z or digits; see --words unicode" if ascii_only else "letters or digits"
            raise ValueError(f"reference {number} has no word for ROUGE ({known}): {texts!r:.80}")
    if settings.backend == "perl" and not ascii_only:
        raise ValueError(
            "the perl backend knows words of a-z and digits only: use --backend rouge-score for these texts"
        )
    if settings.backend == "perl":
        if len(flat) > len(references):
            raise ValueError("the perl backend takes one reference per document; use --backend rouge-score for several")
        scores, backend = perl.score(hypothesis_lines, flat, settings.stem, settings.bootstrap_samples)
    else:
        scores = _score(hypothesis_lines, reference_lines, settings)
        backend = f"rouge-score {version('rouge-score')}"
    return RougeReport(
        scores=scores,
        signature=_signature(settings, backend, len(references), len(flat)),
        documents=len(references),
        empty_hypotheses=sum(not word.search(" ".join(lines)) for lines in hypothesis_lines),
        repeated_trigrams=repeated_trigrams(hypothesis_lines),
        repeated_in_references=repeated_trigrams(flat),
        non_ascii_documents=sum(
            ascii_only and any(_NON_ASCII_WORD.search(" ".join(lines)) for lines in (hypothesis, *texts))
            for hypothesis, texts in zip(hypothesis_lines, reference_lines, strict=True)
        ),
    )


def _signature(settings: RougeSettings, backend: str, documents: int, references: int) -> str:
    """What makes a score comparable; `backend`: name and version of what computed it."""
    seed = "its own" if settings.backend == "perl" else settings.seed
    bootstrap = f"{settings.bootstrap_samples} (95 %, seed {seed})" if settings.bootstrap_samples else "none"
    words = "" if settings.words == "ascii" else f"words: {settings.words} | "
    several = f" | references: {references} ({settings.several_references} of each document)"
    return (
        f"backend: {backend} | {words}stem: {'yes' if settings.stem else 'no'} | "
        f"hypothesis-sentences: {settings.hypothesis_sentences} | "
        f"reference-sentences: {settings.reference_sentences} | "
        f"bootstrap: {bootstrap} | documents: {documents}{several if references > documents else ''}"
    )


def split_summary(summary: Summary, method: str) -> list[str]:
    """Splits a summary into sentences, without line breaks and empty ones.

    `summary`: a text, or its sentences, which every method (of `SENTENCE_METHODS`) but `given` joins by a space first.
    """
    items = summary.split("\n") if isinstance(summary, str) else list(summary)
    text = " ".join(" ".join(items).split())
    if method == "given":
        sentences = items
    elif method == "none":
        sentences = [text]
    elif method == "files2rouge":  # its --eos at the default: every " ." ends a line, so detokenised text is one line
        *ended, rest = text.split(" .")
        sentences = [sentence + " ." for sentence in ended] + [rest]
    else:
        from hat_fairseq.data.text import split_sentences

        sentences = split_sentences(text, method) if text else []  # ValueError for an unknown method
    lines = (" ".join(sentence.split()) for sentence in sentences)
    return [line for line in lines if not is_blank(line)]


def _score(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]], settings: RougeSettings
) -> dict[str, Interval]:
    """F x 100 by rouge-score: the best or the mean of each document's references."""
    choose = np.max if settings.several_references == "best" else np.mean
    columns: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        for metric, values in score_documents([hypothesis] * len(texts), texts, settings.stem, settings.words).items():
            columns[metric].append(100 * choose(values))
    samples, seed = settings.bootstrap_samples, settings.seed
    return {metric: bootstrap_mean(np.array(values), samples, seed) for metric, values in columns.items()}


def score_documents(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], stem: bool, words: str = "ascii"
) -> dict[str, np.ndarray]:
    """Computes F in [0, 1] of each document, (documents,), by metric; texts are lists of sentences.

    `words`: one of `WORDS`.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(METRICS), tokenizer=make_tokenizer(stem, words))
    scores = [
        scorer.score("\n".join(reference), "\n".join(hypothesis))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return {metric: np.array([score[metric].fmeasure for score in scores]) for metric in METRICS}


@cache
def make_tokenizer(stem: bool, words: str = "ascii") -> Any:
    """Returns an object whose `tokenize(text)` gives rouge-score's tokens, or those of every script.

    Each word is stemmed only once; words with letters outside a-z have no stem.
    """
    from rouge_score.tokenizers import DefaultTokenizer

    tokenizer = DefaultTokenizer(use_stemmer=stem)
    if stem:
        tokenizer._stemmer.stem = cache(tokenizer._stemmer.stem)
    return tokenizer if words == "ascii" else _UnicodeTokenizer(tokenizer)


class _UnicodeTokenizer:
    """Words of every script; those of ASCII are left to rouge-score's tokenizer, which may stem them."""

    def __init__(self, ascii_tokenizer: Any) -> None:
        self.ascii_tokenizer = ascii_tokenizer

    def tokenize(self, text: str) -> list[str]:
        tokens = ([word] if not word.isascii() else self.ascii_tokenizer.tokenize(word) for word in words_of(text))
        return [token for each in tokens for token in each]


def words_by_script(texts: Iterable[str]) -> str:
    """Returns which of `WORDS` suits the references: `unicode` if over a quarter of their letters are not Latin."""
    return WORDS[is_other_alphabet(texts)]


def score_against_others(
    hypotheses: Sequence[Summary], references: Sequence[Sequence[Summary]], settings: RougeSettings
) -> dict[str, float]:
    """Scores every summary against the first references of the next `OTHERS` documents (going round): mean F x 100.

    The drop shows how much of the score is specific to the document. ValueError for a single document.
    """
    if len(references) < 2:
        raise ValueError("one document alone cannot be scored against others")
    own = [split_summary(summary, settings.hypothesis_sentences) for summary in hypotheses]
    lines = [split_summary(summary, settings.reference_sentences) for summary, *_ in references]
    shifts = range(1, min(OTHERS, len(lines) - 1) + 1)
    rotated = [reference for shift in shifts for reference in (*lines[shift:], *lines[:shift])]
    scores = score_documents(own * len(shifts), rotated, settings.stem, settings.words)
    return {metric: 100 * float(scores[metric].mean()) for metric in METRICS}


def repeated_trigrams(texts: Sequence[Sequence[str]]) -> float:
    """Computes seq-rep-3 of Welleck et al. 2020 in percent: the mean of 1 - (different 3-grams / 3-grams) of words.

    `texts`: the sentences of each. 0 for a text of less than three words; words are compared in lower case.
    """
    shares = []
    for words in (" ".join(lines).lower().split() for lines in texts):
        trigrams = list(zip(words, words[1:], words[2:], strict=False))
        shares.append(1 - len(set(trigrams)) / len(trigrams) if trigrams else 0.0)
    return 100 * sum(shares) / len(shares)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options; one that is not stated takes the preset's value, else that of `RougeSettings`."""
    default = RougeSettings()
    parser.add_argument("--like", choices=sorted(PRESETS), help="split and stem as that tool does by default")
    text = f"implementation (default: {default.backend})"
    parser.add_argument("--backend", choices=("rouge-score", "perl"), help=text)
    text = "compare stems of words (default: yes)"
    parser.add_argument("--stem", action=argparse.BooleanOptionalAction, default=None, help=text)
    for side, method in (("hypothesis", default.hypothesis_sentences), ("reference", default.reference_sentences)):
        text = f"how each {side} is split (default: {method})"
        parser.add_argument(f"--{side}-sentences", choices=SENTENCE_METHODS, help=text)
    text = (
        "what a word is: runs of a-z and 0-9, as in other tools, or words of every script (default: ascii, and unicode "
    )
    text += "if over a quarter of the references' letters are not Latin)"
    parser.add_argument("--words", choices=WORDS, help=text)
    text = f"with several references: the best score of a document or the mean (default: {default.several_references})"
    parser.add_argument("--several-references", choices=("best", "mean"), help=text)
    text = "also score each hypothesis against other documents' references (by rouge-score): the drop shows how much "
    text += "of the score is specific to the document"
    parser.add_argument("--against-others", action="store_true", help=text)


def score(args: argparse.Namespace) -> Report:
    """Returns a row for each system, F x 100 with intervals, the signature, and scores against other references."""
    stated = {each.name: value for each in fields(RougeSettings) if (value := getattr(args, each.name)) is not None}
    settings = RougeSettings(**PRESETS.get(args.like, {}) | stated)
    references = read_references(args.references)
    report = Report([["", *METRICS.values()]])
    lines = (line for texts in references.texts for text in texts for line in split_summary(text, "given"))
    if not (args.words or args.like) and (words := words_by_script(lines)) != settings.words:
        settings = replace(settings, words=words)
        report.more.append(f"words {words}: over a quarter of the references' letters are not Latin")
    for path in args.hypotheses:
        texts = read_hypotheses(path, references)
        system = rouge(texts, references.texts, settings)
        report.record[path] = asdict(system)
        report.rows.append([path, *map(str, system.scores.values())])
        report.signatures.append(system.signature)
        repeated = f"{system.repeated_trigrams:.2f} % (references: {system.repeated_in_references:.2f} %)"
        report.more.append(f"repeated 3-grams: {path} {repeated}")
        if args.against_others:
            means = score_against_others(texts, references.texts, settings)
            figures = " ".join(f"{mean:.2f}" for mean in means.values())
            report.more.append(f"against other documents' references: {path} {figures}")
        if count := system.empty_hypotheses:
            report.notes.append(f"{path}: {count} of {system.documents} hypotheses are empty and score 0")
        if count := system.non_ascii_documents:
            letters = "have letters outside a-z, which --words ascii ignores"
            report.notes.append(f"{path}: {count} of {system.documents} documents {letters}")
    return report
