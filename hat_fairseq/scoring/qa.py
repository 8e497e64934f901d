"""Exact match and F1 of short answers, joined with questions by id: SQuAD 2.0, TriviaQA, and questions of one's own.

SQuAD (Rajpurkar et al. 2016, section 6.1, and 2018) compares answers as bags of words without case, punctuation and
articles. Of several gold answers the best one counts; for a question without answer the empty text is right. Answers to
questions of one's own are compared by words of all scripts, with articles, signs and digits: C is not C++, and 1.0 is
not 10. Their answer is yes or no, or the text from the first to the last span of an
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
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hat_fairseq.data.columns import AS_NAMED
from hat_fairseq.data.files import Fields
from hat_fairseq.data.formats import opened
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.kinds.document_questions import DocumentQuestion, DocumentQuestionKind
from hat_fairseq.data.kinds.questions import QuestionKind
from hat_fairseq.data.language import pattern, separate_unspaced
from hat_fairseq.data.record import Annotation, Record
from hat_fairseq.data.records_json import read_records, records_in
from hat_fairseq.data.text import is_blank, shown
from hat_fairseq.scoring.files import check_joined, is_empty, read_by_id
from hat_fairseq.scoring.report import Interval, Output, Report, Signature, bootstrap_mean, check_counts, resampling

Figures = dict[str, float | Interval]  # x 100, but counts, and thresholds as they are
Match = tuple[float, float]  # exact match and F1, 0 to 1

SQUAD_THRESHOLD = 1.0
ARTICLES = re.compile(r"\b(a|an|the)\b")
DELETED = str.maketrans("", "", string.punctuation)
#: Marks inside of a number or before one, but commas of thousands; signs, which are words; other punctuation.
MARKS = r"((?<=\d)(?:[.:/\p{Pd}]|,(?!\d{3}(?!\d)))(?=\d)|(?<![\w.])[-\u2212.](?=\.?\d))|([%#&\p{S}])|\p{P}"
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


def words_and_signs(text: str) -> list[str]:
    """Returns the words of an answer in any script, its numbers and its signs; characters of scripts without spaces.

    A minus before a number belongs to it, as do the marks between its digits.
    """
    text = unicodedata.normalize("NFC", text).lower()
    text = pattern(MARKS).sub(lambda found: found[1] or (f" {found[2]} " if found[2] else ""), text)
    return separate_unspaced(text.replace("\u2212", "-").replace("\u2013", "-")).split()


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
    with opened(Path(path)) as file:
        rows = file.rows(keep_empty=True)
        if (first := next(rows, None)) is None:
            raise ValueError(f"{path} is empty: nothing to score")
        kind = kind_of((QuestionKind if first[1].get("paragraphs") is None else DocumentQuestionKind).name)
        records = records_in(file, chain([first], rows), kind, AS_NAMED, "")
        return {record.id: _gold(record) for record in records}


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
    """The predicted answer; empty for null, if it shows nothing, and of a document without text."""
    without = is_empty(fields) or fields.record.get("answer", "") is None
    return "" if without else shown(fields.text("answer"))


def _no_answer_scores(path: str, predictions: Mapping[str, Fields]) -> dict[str, float]:
    """The no-answer scores of predictions; none where they have none, ValueError if only some have one.

    A document without text has the highest score.
    """
    stated = {i: fields.record.get("no_answer_score") for i, fields in predictions.items()}
    scores = {i: score for i, score in stated.items() if score is not None}
    empty = [i for i, fields in predictions.items() if is_empty(fields)]
    if scores and len(scores) + len(empty) < len(predictions):
        lines = f"{len(scores)} of {len(predictions)} lines"
        raise ValueError(f"{path}: {lines} have a no_answer_score: give all one, or none")
    for i, score in scores.items():
        if type(score) not in (int, float):
            raise predictions[i].error(f"no_answer_score must be a number, not {score!r:.60}")
    return scores | dict.fromkeys(empty if scores else [], max(scores.values(), default=0.0))


def squad(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    no_answer_scores: Sequence[float] | None = None,
    no_answer_threshold: float = SQUAD_THRESHOLD,
    order: Sequence[int] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> Report:
    """Computes exact match and F1 of answers as in SQuAD 2.0.

    Args:
        hypotheses: the answer to each question; empty for no answer.
        references: the accepted answers to each question; none if it has no answer.
        no_answer_scores: of each question; one above the threshold counts as no answer, whatever the text is.
        order: numbers of all questions, from 0; of equal no-answer scores the first one comes first where the best
            threshold is searched. None for the order of the questions.
        bootstrap_samples, seed: of the resampling of questions; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of hypotheses than of references, no questions, or a threshold that is no number.
    """
    if math.isnan(no_answer_threshold):
        raise ValueError("the no-answer threshold must be a number, not nan")
    check_counts(hypotheses=hypotheses, references=references, no_answer_scores=no_answer_scores)
    odds, settings = list(no_answer_scores or ()), {}
    if odds:
        settings["no-answer-threshold"] = f"{no_answer_threshold:g}"
    matches = [squad_match(text, golds) for text, golds in zip(hypotheses, references, strict=True)]
    unanswered = [score > no_answer_threshold for score in odds] or [False] * len(matches)
    final = [
        (float(not golds),) * 2 if is_unanswered else match
        for match, golds, is_unanswered in zip(matches, references, unanswered, strict=True)
    ]
    figures = _squad_figures(final, references, bootstrap_samples, seed)
    if odds:
        sorted_questions = sorted(range(len(odds)) if order is None else order, key=odds.__getitem__)
        figures |= _best_thresholds(hypotheses, references, matches, odds, sorted_questions)
    return _report("SQuAD 2.0", figures, settings, bootstrap_samples, seed)


def qa(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap_samples: int = 1000, seed: int = 0
) -> Report:
    """Computes exact match and F1 of answers to questions of one's own, in any script; the arguments are `squad`'s."""
    check_counts(hypotheses=hypotheses, references=references)
    matches = [squad_match(text, golds, words_and_signs) for text, golds in zip(hypotheses, references, strict=True)]
    figures = _squad_figures(matches, references, bootstrap_samples, seed)
    return _report("words of all scripts, numbers and signs", figures, {}, bootstrap_samples, seed)


def triviaqa(
    hypotheses: Sequence[str | None],
    references: Sequence[Sequence[str]],
    *,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> Report:
    """Computes exact match and F1 of answers as in TriviaQA (Wikipedia).

    Args:
        hypotheses: the answer to each question; None for a question without prediction, which counts 0.
        references: the accepted answers to each question, at least one.
        bootstrap_samples, seed: of the resampling of questions; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of hypotheses than of references, no questions, or one without accepted answers.
    """
    check_counts(hypotheses=hypotheses, references=references)
    if number := next((number for number, golds in enumerate(references, start=1) if not golds), None):
        raise ValueError(f"question {number} has no accepted answers")
    pairs = zip(hypotheses, references, strict=True)
    values = [(0.0, 0.0) if text is None else triviaqa_match(text, golds) for text, golds in pairs]
    columns = zip(("exact_match", "f1"), 100 * np.array(values).T, strict=True)
    figures: Figures = {name: bootstrap_mean(column, bootstrap_samples, seed) for name, column in columns}
    figures |= {"total": len(values), "predicted": len(values) - list(hypotheses).count(None)}
    return _report("TriviaQA (Wikipedia)", figures, {}, bootstrap_samples, seed)


def _report(title: str, figures: Figures, settings: dict[str, str], samples: int, seed: int) -> Report:
    settings = settings | {"bootstrap": resampling(samples, seed, "questions"), "questions": str(figures["total"])}
    return Report(scores=figures, signature=Signature(settings, title))


def _squad_figures(matches: Sequence[Match], golds: Sequence[Sequence[str]], samples: int, seed: int) -> Figures:
    """Exact match and F1 of all questions, and of those with and without answer."""
    figures: Figures = {}
    numbers = range(len(golds))
    parts = {"": numbers, "HasAns_": [n for n in numbers if golds[n]], "NoAns_": [n for n in numbers if not golds[n]]}
    for prefix, part in parts.items():
        if part:
            for name, values in zip(("exact", "f1"), 100 * np.array([matches[n] for n in part]).T, strict=True):
                interval = bootstrap_mean(values, 0 if prefix else samples, seed)
                figures[prefix + name] = interval.mean if prefix else interval
            figures[f"{prefix}total"] = len(part)
    return figures


def _best_thresholds(
    texts: Sequence[str],
    golds: Sequence[Sequence[str]],
    matches: Sequence[Match],
    odds: Sequence[float],
    order: Sequence[int],
) -> Figures:
    """The best scores over all thresholds; `order`: the questions by their scores."""
    figures: Figures = {}
    unanswerable = sum(not each for each in golds)
    for number, name in enumerate(("exact", "f1")):
        gains = [matches[n][number] if golds[n] else -bool(texts[n]) for n in order]
        sums = np.cumsum([unanswerable, *gains])  # of answering none, the first one, ...
        best = int(sums.argmax())
        figures[f"best_{name}"] = float(100 * sums[best] / len(golds))
        figures[f"best_{name}_thresh"] = odds[order[best - 1]] if best else 0.0
    return figures


def add_threshold(parser: argparse._ArgumentGroup) -> None:
    text = f"count a question with a higher no-answer score as unanswered (default: {SQUAD_THRESHOLD:g}, as in "
    text += "SQuAD's script)"
    parser.add_argument("--no-answer-threshold", type=float, metavar="X", help=text)


def check_threshold(args: argparse.Namespace) -> None:
    """Raises ValueError for a threshold that is no number."""
    if math.isnan(args.no_answer_threshold or 0):
        raise ValueError("--no-answer-threshold must be a number, not nan")


def score_answers(args: argparse.Namespace) -> Output:
    """Returns a line for each figure of `squad` or `qa`, then the signature; several systems below each other."""
    golds, output = read_golds(args.references[0]), Output()
    for path in args.hypotheses:
        predictions = read_by_id(path, lambda fields: fields)
        check_joined(predictions, golds, (path, args.references[0]))
        texts = {i: _predicted(fields) for i, fields in predictions.items()}
        guesses, accepted = [texts[i] for i in golds], [gold.answers for gold in golds.values()]
        if args.metric == "qa":
            report = qa(guesses, accepted, **_resampled(args))
        else:
            report = squad(guesses, accepted, **_decisions(args, path, golds, predictions), **_resampled(args))
        more = _annotated_figures(golds, texts, predictions)
        _add(output, args, path, replace(report, scores=report.scores | more))
    return output


def _decisions(
    args: argparse.Namespace, path: str, golds: Mapping[str, Gold], predictions: Mapping[str, Fields]
) -> dict[str, Any]:
    """What decides on no answer: of equal scores the first line of the file comes first, as in SQuAD."""
    scores, place = _no_answer_scores(path, predictions), {i: number for number, i in enumerate(golds)}
    if args.no_answer_threshold is not None and not scores:
        raise ValueError(f"--no-answer-threshold has no effect: {path} has no no_answer_score")
    threshold = SQUAD_THRESHOLD if args.no_answer_threshold is None else args.no_answer_threshold
    return {
        "no_answer_scores": [scores[i] for i in golds] if scores else None,
        "no_answer_threshold": threshold,
        "order": [place[i] for i in predictions],
    }


def _annotated_figures(golds: Mapping[str, Gold], texts: Mapping[str, str], lines: Mapping[str, Fields]) -> Figures:
    """The shares of right texts among the questions with an accepted yes or no, and of right paragraphs."""
    figures: Figures = {}
    if yes_no := [squad_match(texts[i], gold.answers)[0] for i, gold in golds.items() if gold.yes_no]:
        figures["yes_no"] = 100 * sum(yes_no) / len(yes_no)
    if paragraphs := {i: gold.paragraphs for i, gold in golds.items() if gold.paragraphs is not None}:
        right = (_paragraph(lines[i]) in (each or {None}) for i, each in paragraphs.items())
        figures["paragraph"] = 100 * sum(right) / len(paragraphs)
    return figures


def _paragraph(fields: Fields) -> int | None:
    """The number of the predicted paragraph, which a table has as text."""
    value = fields.record.get("paragraph")
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if value is not None and type(value) is not int:
        raise fields.error(f"paragraph must be a number, not {value!r:.60}")
    return value


def _resampled(args: argparse.Namespace) -> dict[str, Any]:
    return {"bootstrap_samples": args.bootstrap_samples, "seed": args.seed}


def score_triviaqa(args: argparse.Namespace) -> Output:
    """Returns what `score_answers` does, with the figures of TriviaQA; `meta` of the records has the questions."""
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
    ids, output = {i for each in pages.values() for i in each}, Output()
    for path in args.hypotheses:
        predictions = read_by_id(path, lambda fields: fields)
        if others := predictions.keys() - ids:
            output.notes.append(f"{path}: {len(others)} predictions are of no question of {args.references[0]}")
        texts = [_page_answer(path, predictions, pages[question]) for question in golds]
        if missing := texts.count(None):
            output.notes.append(f"{path}: {missing} of {len(golds)} questions have no prediction and count 0")
        _add(output, args, path, triviaqa(texts, list(golds.values()), **_resampled(args)))
    return output


def _page_answer(path: str, predictions: Mapping[str, Fields], pages: Iterable[str]) -> str | None:
    """The answer to a question from those on its pages; None without any."""
    texts = {i: _predicted(predictions[i]) for i in pages if i in predictions}
    odds = _no_answer_scores(path, {i: predictions[i] for i in texts})
    if len(texts) > 1 and not odds:
        text = f"several answers to a question, none with a no_answer_score, so none can be chosen: {', '.join(texts)}"
        raise ValueError(f"{path}: {text}")
    return texts[min(texts, key=lambda i: (not texts[i], odds.get(i, 0.0)))] if texts else None


def _add(output: Output, args: argparse.Namespace, path: str, report: Report) -> None:
    output.more.extend([*[path] * (len(args.hypotheses) > 1), *str(report).split("\n")])
    scores = {name: each.mean if isinstance(each, Interval) else each for name, each in report.scores.items()}
    intervals = {name: asdict(each) for name, each in report.scores.items() if isinstance(each, Interval)}
    output.record[path] = {"scores": scores, "intervals": intervals, "signature": str(report.signature)}
