"""ROUGE-1, ROUGE-2 and summary-level ROUGE-L (Lin 2004): F x 100 with intervals over documents and a signature.

How texts are divided into sentences moves ROUGE-L by up to 7 points, so the signature says it.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np

from hat_fairseq.data.language import is_other_alphabet, words_of
from hat_fairseq.data.text import is_blank
from hat_fairseq.scoring import perl
from hat_fairseq.scoring.files import Summary, read_hypotheses, read_references
from hat_fairseq.scoring.marks import MARK, notes_on_marks, split_at_marks
from hat_fairseq.scoring.report import (
    Interval,
    Output,
    Report,
    Signature,
    bootstrap_mean,
    check_choices,
    check_counts,
    is_alone,
    resampling,
)

METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L (summary)"}

_ASCII_WORD = re.compile(r"[A-Za-z0-9]")
_UNICODE_WORD = re.compile(r"[^\W_]")
_NON_ASCII_WORD = re.compile(r"[^\W_a-zA-Z0-9]")

#: ascii: runs of a-z and 0-9, as in ROUGE-1.5.5 and rouge-score; unicode: words of every script, see
#: `hat_fairseq.data.language.words_of`.
WORDS = ("ascii", "unicode")

#: given: the items of a list, or the lines of a text (a reference of one line is split as the hypotheses are, because
#: nobody has given its sentences); punctuation, library: as in `hat_fairseq.data.text`; files2rouge: that tool's rule,
#: a sentence ends only at a full stop after a space; none: one sentence.
SENTENCE_METHODS = ("given", "punctuation", "library", "files2rouge", "none")

#: `rouge-score` (Python) or `perl` (ROUGE-1.5.5).
BACKENDS = ("rouge-score", "perl")

#: A document's score is the best one against its references, or their mean.
SEVERAL = ("best", "mean")
NO_PERL = "the perl backend knows words of a-z and digits only"

#: How other tools treat their input when called without options. files2rouge reads one line per document and runs
#: ROUGE-1.5.5 with stemming; rouge-score (and Hugging Face's `evaluate`) takes lines as sentences and does not stem.
PRESETS: dict[str | None, dict[str, Any]] = {
    "files2rouge": {
        "stem": True,
        "words": "ascii",
        "hypothesis_sentences": "files2rouge",
        "reference_sentences": "files2rouge",
    },
    "rouge-score": {
        "stem": False,
        "words": "ascii",
        "hypothesis_sentences": "given",
        "reference_sentences": "given",
    },
}
PRESETS["rouge-1.5.5"] = {"backend": "perl", **PRESETS["files2rouge"]}


@dataclass(frozen=True, kw_only=True)
class RougeReport(Report):
    """The scores of one system, from `METRICS`' keys to F x 100 with its interval, and what lowers them."""

    documents: int
    empty_hypotheses: int  # documents without any generated word (they score 0 and are part of the mean)
    repeated_trigrams: float  # of the hypotheses, see the function
    repeated_in_references: float
    non_ascii_documents: int  # documents with letters or digits that `words: ascii` drops


def rouge(
    hypotheses: Sequence[Summary],
    references: Sequence[str | Sequence[Summary]],
    *,
    backend: str = "rouge-score",
    stem: bool = True,
    hypothesis_sentences: str = "punctuation",
    reference_sentences: str = "given",
    words: str | None = None,
    several_references: str = "best",
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> RougeReport:
    """Scores summaries against the references of the same documents.

    The settings of another tool are in `PRESETS`: `rouge(hypotheses, references, **PRESETS["files2rouge"])`.

    Args:
        hypotheses: of each document a text, or a list of its sentences.
        references: of each document a text, or a list of references; one of these is a text or a list of sentences.
        backend: one of `BACKENDS`.
        stem: compare Porter stems instead of words.
        hypothesis_sentences, reference_sentences: how texts are split, one of `SENTENCE_METHODS`.
        words: one of `WORDS`; None for unicode if over a quarter of the references' letters are not Latin, else ascii.
        several_references: one of `SEVERAL`.
        bootstrap_samples: resampled test sets for the intervals; 0 for no intervals.
        seed: of the resampling (the Perl script has its own, fixed).

    Raises:
        ValueError: several references with the Perl backend, other numbers of hypotheses than of references, no
            documents, a reference without a word for ROUGE, or an unknown setting.
    """
    check_counts(hypotheses=hypotheses, references=references)
    several = several_of(references)
    words = words or words_of_references(several)
    check_choices(backend=(backend, BACKENDS), words=(words, WORDS), several_references=(several_references, SEVERAL))
    sentences = {"hypothesis_sentences": hypothesis_sentences, "reference_sentences": reference_sentences}
    check_choices(**{name: (method, SENTENCE_METHODS) for name, method in sentences.items()})
    hypothesis_lines = [split_summary(summary, hypothesis_sentences) for summary in hypotheses]
    given = reference_lines = [[split_summary(text, reference_sentences) for text in texts] for texts in several]
    if reference_sentences == "given":
        pairs = [zip(*pair, strict=True) for pair in zip(several, given, strict=True)]
        reference_lines = [[_divided(text, lines, hypothesis_sentences) for text, lines in pair] for pair in pairs]
    flat = [lines for texts in reference_lines for lines in texts]
    ascii_only = words == "ascii"
    word = _ASCII_WORD if ascii_only else _UNICODE_WORD
    for number, texts in enumerate(reference_lines, start=1):
        if not texts or not all(word.search(" ".join(lines)) for lines in texts):
            known = "letters a-z or digits" if ascii_only else "letters or digits"
            raise ValueError(f"reference {number} has no word for ROUGE ({known}): {texts!r:.80}")
    if backend == "perl" and not ascii_only:
        raise ValueError(NO_PERL)
    if backend == "perl":
        if len(flat) > len(references):
            raise ValueError("the perl backend takes one reference per document")
        scores, name = perl.score(hypothesis_lines, flat, stem, bootstrap_samples)
        if is_alone(len(references)):
            scores = {metric: Interval(each.mean) for metric, each in scores.items()}
    else:
        choose = np.max if several_references == "best" else np.mean
        columns = _scores(hypothesis_lines, reference_lines, stem, words, choose)
        scores = {metric: bootstrap_mean(column, bootstrap_samples, seed) for metric, column in columns.items()}
        name = f"rouge-score {version('rouge-score')}"
    settings = {
        "backend": name,
        **({} if ascii_only else {"words": words}),
        "stem": "yes" if stem else "no",
        "hypothesis-sentences": hypothesis_sentences,
        "reference-sentences": reference_sentences + f" or {hypothesis_sentences}" * (reference_lines != given),
        "bootstrap": resampling(bootstrap_samples, "its own" if backend == "perl" else seed),
        "documents": str(len(references)),
    }
    if any(MARK.search(text if isinstance(text, str) else " ".join(text)) for text in chain(hypotheses, *several)):
        settings["marks"] = "ends of sentences, no words"
    if len(flat) > len(references):
        settings["references"] = f"{len(flat)} ({several_references} of each document)"
    return RougeReport(
        scores=scores,
        signature=Signature(settings),
        documents=len(references),
        empty_hypotheses=sum(not word.search(" ".join(lines)) for lines in hypothesis_lines),
        repeated_trigrams=repeated_trigrams(hypothesis_lines, words),
        repeated_in_references=repeated_trigrams(flat, words),
        non_ascii_documents=sum(
            ascii_only and any(_NON_ASCII_WORD.search(" ".join(lines)) for lines in (hypothesis, *texts))
            for hypothesis, texts in zip(hypothesis_lines, reference_lines, strict=True)
        ),
    )


DEFAULTS: dict[str, Any] = rouge.__kwdefaults__ or {}  # of the settings of `rouge`


def several_of(references: Iterable[str | Sequence[Summary]]) -> list[list[Summary]]:
    """Returns the references of each document as a list."""
    return [[each] if isinstance(each, str) else list(each) for each in references]


def words_of_references(references: Iterable[Iterable[Summary]]) -> str:
    """Returns which of `WORDS` suits the references of all documents."""
    return suitable_words(line for texts in references for text in texts for line in split_summary(text, "given"))


def split_summary(summary: Summary, method: str) -> list[str]:
    """Splits a summary into sentences, without line breaks and empty ones; a mark (`marks.py`) ends a sentence.

    `summary`: a text, or its sentences, which every method (of `SENTENCE_METHODS`) but `given` joins by a space first.
    """
    items = summary.split("\n") if isinstance(summary, str) else list(summary)
    if method == "given":
        sentences = [part for item in items for part in split_at_marks(item)]
    else:
        parts = [" ".join(part.split()) for part in split_at_marks(" ".join(items))]
        sentences = [" ".join(parts)] if method == "none" else [line for part in parts for line in _split(part, method)]
    lines = (" ".join(sentence.split()) for sentence in sentences)
    return [line for line in lines if not is_blank(line)]


def _divided(text: Summary, given: list[str], method: str) -> list[str]:
    """The sentences given; those of the method if nobody has given them, as in a text of one line."""
    return split_summary(text, method) if isinstance(text, str) and len(given) == 1 else given


def _split(text: str, method: str) -> list[str]:
    if method == "files2rouge":  # its --eos at the default: every " ." ends a line, so detokenised text is one line
        *ended, rest = text.split(" .")
        return [sentence + " ." for sentence in ended] + [rest]
    from hat_fairseq.data.text import split_sentences

    return split_sentences(text, method) if text else []


def _scores(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    stem: bool,
    words: str,
    choose: Callable[[np.ndarray], float],
) -> dict[str, np.ndarray]:
    """F x 100 of each document by rouge-score, as `choose` makes it of its references, by metric."""
    columns: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        for metric, values in score_documents([hypothesis] * len(texts), texts, stem, words).items():
            columns[metric].append(100 * choose(values))
    return {metric: np.array(values) for metric, values in columns.items()}


def score_documents(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], stem: bool, words: str = "ascii"
) -> dict[str, np.ndarray]:
    """Computes F in [0, 1] of each document, (documents,), by metric; texts are lists of sentences.

    `words`: one of `WORDS`.
    """
    from rouge_score.rouge_scorer import RougeScorer

    # The library takes milliseconds for a pair, and a constant summary makes the same pairs again.
    score_pair = lru_cache(1000)(RougeScorer(list(METRICS), tokenizer=make_tokenizer(stem, words)).score)
    scores = [
        score_pair("\n".join(reference), "\n".join(hypothesis))
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


def suitable_words(texts: Iterable[str]) -> str:
    """Returns which of `WORDS` suits the references: `unicode` if over a quarter of their letters are not Latin."""
    return WORDS[is_other_alphabet(texts)]


def repeated_trigrams(texts: Sequence[Sequence[str]], words: str = "ascii") -> float:
    """Computes seq-rep-3 of Welleck et al. 2020 in percent: the mean of 1 - (different 3-grams / 3-grams) of words.

    `texts`: the sentences of each. `words`: unicode for those of `words_of`, else what stands between white space, in
    lower case. 0 for a text of less than three words.
    """
    split = words_of if words == "unicode" else lambda text: text.lower().split()
    shares = []
    for each in (split(" ".join(lines)) for lines in texts):
        trigrams = list(zip(each, each[1:], each[2:], strict=False))
        shares.append(1 - len(set(trigrams)) / len(trigrams) if trigrams else 0.0)
    return 100 * sum(shares) / len(shares)


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """Adds the options; one that is not stated takes the preset's value, else the default of `rouge`."""
    text = "split and stem as this tool does by default; rouge-1.5.5 runs the Perl script itself, as files2rouge does"
    parser.add_argument("--like", choices=sorted(PRESETS), help=text)
    text = "compare the stems of words (default: yes)"
    parser.add_argument("--stem", action=argparse.BooleanOptionalAction, default=None, help=text)


def check(args: argparse.Namespace) -> None:
    """Raises ValueError for a script that cannot run."""
    if "backend" in PRESETS.get(args.like, {}):
        perl.check(args.bootstrap_samples)


def score(args: argparse.Namespace) -> Output:
    """Returns a row for each system, F x 100 with intervals, and the signature."""
    stated = {name: value for name in DEFAULTS if (value := getattr(args, name, None)) is not None}
    options = PRESETS.get(args.like, {}) | stated
    references = read_references(args.references)
    output = Output([["", *METRICS.values()]])
    if "words" not in options:
        options["words"] = words = words_of_references(references.texts)
        if words == "unicode":
            output.more.append(f"words {words}: over a quarter of the references' letters are not Latin")
    output.notes.extend(notes_on_marks(references.path, (text for texts in references.texts for text in texts)))
    for path in args.hypotheses:
        texts = read_hypotheses(path, references)
        output.notes.extend(notes_on_marks(path, texts))
        report = rouge(texts, references.texts, **options)
        output.record[path] = report.to_json()
        output.rows.append([path, *map(str, report.scores.values())])
        output.signatures.append(str(report.signature))
        repeated = f"{report.repeated_trigrams:.2f} % (references: {report.repeated_in_references:.2f} %)"
        output.more.append(f"repeated 3-grams: {path} {repeated}")
        if count := report.empty_hypotheses:
            output.notes.append(f"{path}: {count} of {report.documents} hypotheses are empty and score 0")
        if count := report.non_ascii_documents:
            letters = "have letters outside a-z, which ROUGE ignores"
            output.notes.append(f"{path}: {count} of {report.documents} documents {letters}")
    return output
