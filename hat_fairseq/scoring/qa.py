"""Exact match and F1 of short answers, joined with questions by id: SQuAD 2.0, TriviaQA, and questions of one's own.

SQuAD (Rajpurkar et al. 2016, section 6.1, and 2018) compares answers as bags of words without case, punctuation and
articles. Of several gold answers the best one counts; for a question without answer the empty text is right. Questions
of one's own are compared in the same way, but the punctuation is that of all scripts, and where words have no spaces,
characters are compared. Their answer is yes or no, or the text from the first to the last span of an
annotation, as in training; a question has an answer if an annotation has one.

TriviaQA on Wikipedia (Joshi et al. 2017, section 6, and `triviaqa_evaluation.py`) puts spaces for underscores and
punctuation, and texts without common words have F1 0, even if both are empty. Of several pages of a question, the one
with the lowest no-answer score answers, among those with a text; a question without prediction counts 0.
"""

import argparse
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds.document_questions import DocumentQuestion, DocumentQuestionKind
from hat_fairseq.data.kinds.questions import QuestionKind
from hat_fairseq.data.language import pattern, separate_unspaced
from hat_fairseq.data.record import Annotation, Record
from hat_fairseq.data.records_json import keys_of, read_records
from hat_fairseq.data.text import is_blank, shown
from hat_fairseq.scoring.files import check_joined, read_by_id, records
from hat_fairseq.scoring.report import Interval, Report, aligned, bootstrap_mean, digits, resampling

Figures = dict[str, float | Interval]  # x 100, but counts, and thresholds as they are
Match = tuple[float, float]  # exact match and F1, 0 to 1

SQUAD_THRESHOLD = 1.0
ARTICLES = re.compile(r"\b(a|an|the)\b")
DELETED = str.maketrans("", "", string.punctuation)
UNICODE_PUNCTUATION = r"[\p{P}\p{S}]+"
SPACES = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def squad_match(answer: str, golds: Sequence[str], words_of: Callable[[str], list[str]] | None = None) -> Match:
    """Returns the best match by SQuAD's definition; no gold answers: there is no answer.

    `words_of`: another definition of the words that are compared.
    """
    words_of = words_of or squad_words
    words = words_of(answer)
    # A gold answer of nothing but articles and punctuation is none; if no other is left, there is no answer.
    accepted = [gold_words for gold in golds if (gold_words := words_of(gold))] or [[]]
    exact = max(float(words == gold) for gold in accepted)
    return exact, max(word_f1(words, gold) if words and gold else float(words == gold) for gold in accepted)


def triviaqa_match(answer: str, golds: Sequence[str]) -> Match:
    """Returns the best match by TriviaQA's definition."""
    words, accepted = _words(answer, SPACES), [_words(gold, SPACES) for gold in golds]
    return max(float(words == gold) for gold in accepted), max(word_f1(words, gold) for gold in accepted)


def squad_words(text: str) -> list[str]:
    """Returns SQuAD's words: lower case, without ASCII punctuation and English articles."""
    return _words(text, DELETED)


def words_by_script(text: str) -> list[str]:
    """Returns the words of texts in any script: SQuAD's for ASCII.

    All punctuation and symbols of Unicode are left out, and a character of a script without spaces is a word.
    """
    text = text if text.isascii() else pattern(UNICODE_PUNCTUATION).sub("", unicodedata.normalize("NFC", text))
    return squad_words(separate_unspaced(text))


def _words(text: str, punctuation: Mapping[int, int | str | None]) -> list[str]:
    return ARTICLES.sub(" ", text.lower().translate(punctuation)).split()


def word_f1(words: Sequence[str], gold: Sequence[str]) -> float:
    """Computes F1 of two multisets of words; 0 if they have none in common, also if both have none."""
    common = (Counter(words) & Counter(gold)).total()
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(gold)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class Gold:
    """The accepted answers to a question, none if it has no answer, and the annotators' paragraphs."""

    answers: tuple[str, ...]
    yes_no: bool = False  # an accepted answer is yes or no
    paragraphs: frozenset[int] | None = None  # None for the kind `qa`


def read_golds(path: str) -> dict[str, Gold]:
    """Reads the gold answers of each question; ValueError for other files, and where answers are not known."""
    first = next(records(path, keys_of(DocumentQuestionKind.name)), None)
    kind = DocumentQuestionKind.name if first and "paragraphs" in first else QuestionKind.name
    golds = {record.id: _gold(record) for record in read_records(path, kind)}
    if not golds:
        raise ValueError(f"{path} is empty: nothing to score")
    return golds


def _gold(record: Record) -> Gold:
    if (gold := record.gold_value) is None:
        raise ValueError(f"{record.name} has no answers or annotations, so its prediction cannot be scored")
    if isinstance(record, DocumentQuestion):
        answers = [answer for each in gold if (answer := _answer(each, record.paragraphs))]
        paragraphs = frozenset(each.paragraph for each in gold if each.paragraph is not None)
        return Gold(tuple(answers), any(each.yes_no for each in gold), paragraphs)
    return Gold(tuple(answer.text for answer in gold if not is_blank(answer.text)))


def _answer(annotation: Annotation, paragraphs: tuple[str, ...]) -> str | None:
    """The short answer; None if there is none, and empty if it shows nothing."""
    if annotation.yes_no or not annotation.spans:
        return annotation.yes_no
    first, last = min(span.start for span in annotation.spans), max(span.end for span in annotation.spans)
    return shown(paragraphs[annotation.paragraph or 0][first:last])


def _predicted(fields: Fields) -> str:
    """The predicted answer; empty for null, and if it shows nothing."""
    return "" if fields.record.get("answer", "") is None else shown(fields.text("answer"))


def _no_answer_scores(path: str, predictions: Mapping[str, Fields]) -> dict[str, float]:
    """The no-answer scores of predictions; none where they have none, ValueError if only some have one."""
    scores = {i: fields.record["no_answer_score"] for i, fields in predictions.items() if "no_answer_score" in fields}
    if scores and len(scores) < len(predictions):
        lines = f"{len(scores)} of {len(predictions)} lines"
        raise ValueError(f"{path}: {lines} have a no_answer_score: give all one, or none")
    for i, score in scores.items():
        if type(score) not in (int, float):
            raise predictions[i].error(f"no_answer_score must be a number, not {score!r:.60}")
    return scores


def _squad_figures(
    texts: Mapping[str, str],
    golds: Mapping[str, Gold],
    odds: Mapping[str, float],
    threshold: float,
    args: argparse.Namespace,
) -> Figures:
    """The figures of SQuAD 2.0; questions with `odds`, no-answer scores, above the threshold count as unanswered."""
    words = squad_words if args.metric == "squad" else words_by_script
    matches = {i: squad_match(texts[i], gold.answers, words) for i, gold in golds.items()}
    unanswered = {i for i, score in odds.items() if score > threshold}
    final = {i: (float(not golds[i].answers),) * 2 if i in unanswered else match for i, match in matches.items()}
    figures: Figures = {}
    answerable = [i for i in golds if golds[i].answers]
    parts = {"": list(golds), "HasAns_": answerable, "NoAns_": [i for i in golds if not golds[i].answers]}
    for prefix, ids in parts.items():
        if ids:
            for name, values in zip(("exact", "f1"), 100 * np.array([final[i] for i in ids]).T, strict=True):
                interval = bootstrap_mean(values, 0 if prefix else args.bootstrap_samples, args.seed)
                figures[prefix + name] = interval.mean if prefix else interval
            figures[f"{prefix}total"] = len(ids)
    # Questions are answered in the order in which SQuAD takes them: of equal scores the first in `odds`.
    order = sorted(odds, key=odds.__getitem__)
    for number, name in enumerate(("exact", "f1") if odds else ()):
        gains = [matches[i][number] if golds[i].answers else -bool(texts[i]) for i in order]
        sums = np.cumsum([len(golds) - len(answerable), *gains])  # of answering none, the first one, ...
        best = int(sums.argmax())
        figures[f"best_{name}"] = float(100 * sums[best] / len(golds))
        figures[f"best_{name}_thresh"] = odds[order[best - 1]] if best else 0.0
    return figures


def add_threshold(parser: argparse.ArgumentParser) -> None:
    text = f"a question with a higher no-answer score counts as unanswered (default: {SQUAD_THRESHOLD:g}, as SQuAD's)"
    parser.add_argument("--no-answer-threshold", type=float, metavar="X", help=text)


def score_squad(args: argparse.Namespace) -> Report:
    """Returns a line for each figure, then the signature; several systems below each other, each under its name."""
    stated = getattr(args, "no_answer_threshold", None)
    threshold = SQUAD_THRESHOLD if stated is None else stated
    if math.isnan(threshold):
        raise ValueError("--no-answer-threshold must be a number, not nan")
    golds, report = read_golds(args.references[0]), Report()
    for path in args.hypotheses:
        predictions = read_by_id(path, lambda fields: fields)
        check_joined(predictions, golds, (path, args.references[0]))
        texts = {i: _predicted(fields) for i, fields in predictions.items()}
        name, odds = "SQuAD 2.0" if args.metric == "squad" else "SQuAD 2.0, words of all scripts", {}
        if args.metric == "squad" and (odds := _no_answer_scores(path, predictions)):
            name = f"{name} | no-answer-threshold: {threshold:g}"
        elif stated is not None:
            raise ValueError(f"--no-answer-threshold has no effect: {path} has no no_answer_score")
        figures = _squad_figures(texts, golds, odds, threshold, args)
        if yes_no := [squad_match(texts[i], gold.answers)[0] for i, gold in golds.items() if gold.yes_no]:
            figures["yes_no"] = 100 * sum(yes_no) / len(yes_no)
        if paragraphs := {i: gold.paragraphs for i, gold in golds.items() if gold.paragraphs is not None}:
            right = (predictions[i].record.get("paragraph") in (each or {None}) for i, each in paragraphs.items())
            figures["paragraph"] = 100 * sum(right) / len(paragraphs)
        _add(report, args, path, figures, name)
    return report


def score_triviaqa(args: argparse.Namespace) -> Report:
    """Returns what `score_squad` does, with the figures of TriviaQA; `meta` of the records has the questions."""
    golds: dict[str, tuple[str, ...]] = {}
    pages: dict[str, list[str]] = {}  # of each question
    for record in read_records(args.references[0], QuestionKind.name):
        fields = Fields((record.meta or {}).get("triviaqa"), f"{record.name}: meta of TriviaQA")
        if not (answers := fields.texts("answers")):
            raise fields.error("the question has no answers; give a file that has them")
        golds.setdefault(fields.text("question"), answers)
        pages.setdefault(fields.text("question"), []).append(record.id)
    if not golds:
        raise ValueError(f"{args.references[0]} is empty: nothing to score")
    ids, report = {i for each in pages.values() for i in each}, Report()
    for path in args.hypotheses:
        predictions = read_by_id(path, lambda fields: fields)
        if others := predictions.keys() - ids:
            report.notes.append(f"{path}: {len(others)} predictions are of no question of {args.references[0]}")
        texts = {question: _page_answer(path, predictions, each) for question, each in pages.items()}
        if missing := list(texts.values()).count(None):
            report.notes.append(f"{path}: {missing} of {len(golds)} questions have no prediction and count 0")
        values = [(0.0, 0.0) if text is None else triviaqa_match(text, golds[i]) for i, text in texts.items()]
        columns = zip(("exact_match", "f1"), 100 * np.array(values).T, strict=True)
        figures: Figures = {n: bootstrap_mean(c, args.bootstrap_samples, args.seed) for n, c in columns}
        figures |= {"total": len(golds), "predicted": len(golds) - missing}
        _add(report, args, path, figures, "TriviaQA (Wikipedia)")
    return report


def _page_answer(path: str, predictions: Mapping[str, Fields], pages: Iterable[str]) -> str | None:
    """The answer to a question from those on its pages; None without any."""
    texts = {i: _predicted(predictions[i]) for i in pages if i in predictions}
    odds = _no_answer_scores(path, {i: predictions[i] for i in texts})
    if len(texts) > 1 and not odds:
        text = f"several answers to a question, none with a no_answer_score, so none can be chosen: {', '.join(texts)}"
        raise ValueError(f"{path}: {text}")
    return texts[min(texts, key=lambda i: (not texts[i], odds.get(i, 0.0)))] if texts else None


def _add(report: Report, args: argparse.Namespace, path: str, figures: Figures, name: str) -> None:
    drawn = resampling(args.bootstrap_samples, args.seed, "questions")
    signature = f"{name} | bootstrap: {drawn} | questions: {figures['total']}"
    rows = [[name, _text(name, figure)] for name, figure in figures.items()]
    report.more.extend([*[path] * (len(args.hypotheses) > 1), *aligned(rows), signature])
    scores = {name: each.mean if isinstance(each, Interval) else each for name, each in figures.items()}
    intervals = {name: asdict(each) for name, each in figures.items() if isinstance(each, Interval)}
    report.record[path] = {"scores": scores, "intervals": intervals, "signature": signature}


def _text(name: str, figure: float | Interval) -> str:
    if isinstance(figure, float):
        return digits(figure) if name.endswith("thresh") else f"{figure:.2f}"
    return str(figure)
