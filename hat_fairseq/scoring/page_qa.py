"""F1 of passages and short answers at the best threshold: Natural Questions and the primary tasks of TyDi QA.

The figures are those of the released `nq_eval` (Kwiatkowski et al. 2019) and `tydi_eval.py` (Clark et al. 2020). A
question has a passage or a short answer if at least two annotators gave one; a yes or no is a short answer. A passage
is right if any annotator chose it, and so is a yes or no. Other short answers count, for Natural Questions, 1 if they
are the set of spans of one annotator; for TyDi QA the F1 of their bytes with the annotator they agree with best.

Answers are taken in the order of their scores, the highest first; those with equal scores are taken together. After
each score, precision is the value of the answers taken so far (1 for a right one) divided by their number, and recall
is the value divided by the number of questions that have an answer. Less than that score means "no answer". In TyDi QA
each language has a threshold of its own; the result is the mean over the languages with predictions, without English.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds.document_questions import DocumentQuestionKind
from hat_fairseq.data.printed import aligned
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import check_joined, is_empty, read_by_id
from hat_fairseq.scoring.official import PageAnswer, Spans, gold_answers, meta_of, page_answer
from hat_fairseq.scoring.report import (
    Interval,
    Output,
    Report,
    Signature,
    bootstrap,
    check_counts,
    digits,
    resampling,
    written,
)

TARGETS = (0.5, 0.75, 0.9)  # precisions of recall at precision
NOT_AVERAGED = "english"
HEADER = ("F1", "precision", "recall", "threshold", *(f"R@P>={target:g}" for target in TARGETS), "F1 of all")


class Prediction(NamedTuple):
    """A model's answer to a question, in the offsets of the dataset, and the scores of its two parts."""

    answer: PageAnswer
    passage_score: float
    short_score: float


class Outcome(NamedTuple):
    """Counts of one question, which are added up, and the score of its prediction."""

    gold: bool  # the question has an answer
    predicted: bool
    value: float  # 0 to 1
    score: float


def outcomes(
    golds: Sequence[PageAnswer], prediction: Prediction | None, annotators: int, in_bytes: bool
) -> tuple[Outcome, Outcome]:
    """Returns the outcomes of passage and short answer.

    `tydi_eval.py` counts a missing prediction as an answer with the score 0 where the question has none.
    """
    passages = [gold.passage for gold in golds if gold.passage is not None]
    has_passage, has_short = (n >= annotators for n in (len(passages), sum(gold.has_short for gold in golds)))
    if prediction is None:
        return Outcome(has_passage, not has_passage, 0.0, 0.0), Outcome(has_short, not has_short, 0.0, 0.0)
    answer, passage_score, short_score = prediction
    value = max(_agreement(answer, gold, in_bytes) for gold in golds) if has_short and answer.has_short else 0.0
    right = has_passage and answer.passage in passages
    return (
        Outcome(has_passage, answer.passage is not None, float(right), passage_score),
        Outcome(has_short, answer.has_short, value, short_score),
    )


def _agreement(answer: PageAnswer, gold: PageAnswer, in_bytes: bool) -> float:
    if answer.yes_no != "none":
        return float(answer.yes_no == gold.yes_no)
    return byte_f1(answer.spans, gold.spans) if in_bytes else float(answer.spans == gold.spans)


def byte_f1(spans: Spans, others: Spans) -> float:
    """Computes F1 of two ranges of bytes; 0 without one of them."""
    for (begin, end), (other_begin, other_end) in zip(spans, others, strict=False):
        common = min(end, other_end) - max(begin, other_begin)
        return 2 * common / (end - begin + other_end - other_begin) if common > 0 else 0.0
    return 0.0


class AnswerCurve:
    """Precision, recall and F1 at all thresholds; `questions`: the numbers of these questions in the test set."""

    def __init__(self, outcomes: Sequence[Outcome], questions: Sequence[int]) -> None:
        order = sorted(range(len(outcomes)), key=lambda number: -outcomes[number].score)
        self.questions = np.array([questions[number] for number in order])
        table = np.array([outcomes[number] for number in order], dtype=float)
        self.counts, scores = table[:, :3], table[:, 3]
        self.last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))  # of each group of equal scores
        self.thresholds = scores[self.last]

    def points(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Returns (3, scores): F1, precision and recall at each score, the highest first; `weights` of questions."""
        counts = self.counts if weights is None else self.counts * weights[self.questions, None]
        gold, predicted, value = counts.cumsum(axis=0).T
        precision, recall = _ratio(value[self.last], predicted[self.last]), _ratio(value[self.last], gold[-1])
        return np.stack([_ratio(2 * precision * recall, precision + recall), precision, recall])

    def best(self) -> dict[str, Any]:
        """Returns figures (x 100) at the highest threshold of the best F1; zeros, the threshold too, if none is right.

        And the highest recall at precisions, and F1 without any threshold.
        """
        points = self.points()
        best = int(points[0].argmax())
        figures = dict(zip(("f1", "precision", "recall"), (100 * points[:, best]).tolist(), strict=True))
        figures["threshold"] = float(self.thresholds[best]) if figures["f1"] else 0.0
        reached = {f"{target:g}": 100 * points[2, points[1] >= target].max(initial=0.0) for target in TARGETS}
        return figures | {"recall_at_precision": reached, "f1_of_all": float(100 * points[0, -1])}


def _ratio(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the denominator is 0."""
    return numerators / np.where(denominators > 0, denominators, 1) * (denominators > 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "count a question as answerable if N annotators gave an answer; 1 for splits with one annotation "
    text += "(default: %(default)s)"
    parser.add_argument("--annotators", type=int, default=2, metavar="N", help=text)


def check(args: argparse.Namespace) -> None:
    """Raises ValueError for less than one annotator."""
    check_annotators(args.annotators)


def check_annotators(annotators: int) -> None:
    if annotators < 1:
        raise ValueError(f"--annotators must be at least 1, not {annotators}")


def natural_questions(
    hypotheses: Sequence[Prediction | None],
    references: Sequence[Sequence[PageAnswer]],
    *,
    annotators: int = 2,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> Report:
    """Computes F1 of long and short answers as in Natural Questions: `scores` has the figures of "long" and "short".

    Args:
        hypotheses: the prediction for each question, or None.
        references: the answers of all annotators of each question.
        annotators: a question has an answer if so many gave one.
        bootstrap_samples, seed: of the resampling of questions; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of hypotheses than of references, no questions, or less than one annotator.
    """
    pairs = _outcomes(hypotheses, references, annotators, in_bytes=False)
    languages = [""] * len(pairs)
    scores = {}
    for name, of_questions in zip(("long", "short"), zip(*pairs, strict=True), strict=True):
        f1, figures = _figures(of_questions, languages, bootstrap_samples, seed)
        scores[name] = figures[""] | {"f1": f1}
    signature = _signature("Natural Questions", annotators, bootstrap_samples, seed, len(pairs))
    return Report(scores=scores, signature=signature)


def tydi_qa(
    hypotheses: Sequence[Prediction | None],
    references: Sequence[Sequence[PageAnswer]],
    languages: Sequence[str],
    *,
    annotators: int = 2,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> Report:
    """Computes F1 of passages and minimal answers as in TyDi QA: `scores` has the figures of "passage" and "minimal".

    The arguments are those of `natural_questions`, with the language of each question. F1 is the mean over languages
    with predictions, without English; `languages` has the figures of each.
    """
    check_counts(hypotheses=hypotheses, references=references, languages=languages)
    pairs = _outcomes(hypotheses, references, annotators, in_bytes=True)
    predicted = {language for each, language in zip(hypotheses, languages, strict=True) if each is not None}
    counted = [number for number, language in enumerate(languages) if language in predicted]
    if not counted:
        raise ValueError("there is no prediction for any question")
    scores = {}
    for kind, name in enumerate(("passage", "minimal")):
        outcomes_of_kind = [pairs[number][kind] for number in counted]
        f1, figures = _figures(outcomes_of_kind, [languages[number] for number in counted], bootstrap_samples, seed)
        averaged = [each for language, each in figures.items() if language != NOT_AVERAGED]
        means = {n: sum(each[n] for each in averaged) / max(len(averaged), 1) for n in ("precision", "recall")}
        scores[name] = {"f1": f1, **means, "languages": figures}
    signature = _signature("TyDi QA, primary tasks", annotators, bootstrap_samples, seed, len(pairs))
    return Report(scores=scores, signature=signature)


def _outcomes(
    hypotheses: Sequence[Prediction | None],
    references: Sequence[Sequence[PageAnswer]],
    annotators: int,
    in_bytes: bool,
) -> list[tuple[Outcome, Outcome]]:
    check_annotators(annotators)
    check_counts(hypotheses=hypotheses, references=references)
    pairs = zip(references, hypotheses, strict=True)
    return [outcomes(golds, prediction, annotators, in_bytes) for golds, prediction in pairs]


def _figures(
    of_questions: Sequence[Outcome], languages: Sequence[str], samples: int, seed: int
) -> tuple[Interval, dict[str, dict[str, Any]]]:
    """The mean best F1 (x 100) over languages without English, and all figures of each language.

    In each resampled test set a language has its own threshold, and one without any resampled question is skipped.
    """
    curves = {}
    for language in sorted(set(languages)):
        numbers = [number for number, each in enumerate(languages) if each == language]
        curves[language] = AnswerCurve([of_questions[number] for number in numbers], numbers)

    def mean(drawn: np.ndarray) -> np.ndarray:
        weights = np.bincount(drawn, minlength=len(languages))
        averaged = [curve for language, curve in curves.items() if language != NOT_AVERAGED]
        present = [curve.points(weights)[0].max() for curve in averaged if weights[curve.questions].any()]
        return np.array([100 * sum(present) / max(len(present), 1)])

    (f1,) = bootstrap(np.arange(len(languages)), mean, samples, seed)
    return f1, {language: curve.best() for language, curve in curves.items()}


def _signature(title: str, annotators: int, samples: int, seed: int, questions: int) -> Signature:
    settings = {
        "annotators": str(annotators),
        "threshold": "of the best F1",
        "bootstrap": resampling(samples, seed, "questions"),
        "questions": str(questions),
    }
    return Signature(settings, title)


@dataclass(frozen=True)
class Questions:
    """The questions of a file of references by id, and for each system its prediction lines and predictions by id."""

    golds: dict[str, list[PageAnswer]]
    languages: dict[str, str]  # "" for Natural Questions
    lines: dict[str, dict[str, Fields]]
    predictions: dict[str, dict[str, Prediction]]


def read_questions(dataset: str, args: argparse.Namespace) -> Questions:
    """Reads references and predictions; ValueError for other files, or no questions."""
    lines = {path: read_by_id(path, lambda fields: fields) for path in args.hypotheses}
    questions = Questions({}, {}, lines, {path: {} for path in lines})
    for record in read_records(args.references[0], DocumentQuestionKind.name):
        questions.golds[record.id] = gold_answers(dataset, record)
        in_language = dataset == "tydi_qa"
        questions.languages[record.id] = meta_of(dataset, record).text("language") if in_language else ""
        for path, own in lines.items():
            if record.id in own:
                questions.predictions[path][record.id] = _prediction(dataset, record, own[record.id])
    if not questions.golds:
        raise ValueError(f"{args.references[0]}: no questions, so there is nothing to score")
    return questions


def _output_of(questions: Questions, annotators: int) -> Output:
    """An output with a note on questions with few annotations."""
    output, few = Output(), sum(len(golds) < annotators for golds in questions.golds.values())
    if few:
        text = f"{few} of {len(questions.golds)} questions have fewer than {annotators} annotations, so they "
        output.notes.append(f"{text}have no answer; --annotators 1 is for parts with one annotation")
    return output


def _prediction(dataset: str, record: Record, fields: Fields) -> Prediction:
    if is_empty(fields):
        return Prediction(PageAnswer(None, frozenset(), "none"), 0.0, 0.0)
    try:
        scores = float(fields.record["paragraph_score"]), float(fields.record["answer_score"])
        return Prediction(page_answer(dataset, record, fields.record), *scores)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise fields.error(f"no prediction of hat predict for this question ({error!r})") from error


def score_natural_questions(args: argparse.Namespace) -> Output:
    """Returns a row for the long and one for the short answers of each system, then the signature."""
    questions = read_questions("natural_questions", args)
    golds, output = questions.golds, _output_of(questions, args.annotators)
    output.rows.append(["", "", *HEADER])
    for path, predictions in questions.predictions.items():
        check_joined(questions.lines[path], golds, (path, args.references[0]))
        report = natural_questions([predictions[i] for i in golds], list(golds.values()), **_settings(args))
        for name, figures in report.scores.items():
            others = [f"{figure:.2f}" for figure in (*figures["recall_at_precision"].values(), figures["f1_of_all"])]
            output.rows.append([path, name, *_cells(figures), *others])
        output.signatures.append(str(report.signature))
        output.record[path] = report.to_json()
    return output


def score_tydi_qa(args: argparse.Namespace) -> Output:
    """Returns the means of each system and the signature, then a table of languages for each system."""
    questions = read_questions("tydi_qa", args)
    sizes, output = Counter(questions.languages.values()), _output_of(questions, args.annotators)
    output.rows.append(["", "passage F1", "minimal F1", "languages without English"])
    for path, predictions in questions.predictions.items():
        output.notes.extend(_check_predictions(questions, path))
        golds, languages = list(questions.golds.values()), list(questions.languages.values())
        report = tydi_qa([predictions.get(i) for i in questions.golds], golds, languages, **_settings(args))
        cells: dict[str, list[str]] = {}  # by language
        for figures in report.scores.values():
            for language, each in figures["languages"].items():
                cells.setdefault(language, [language, str(sizes[language])]).extend(_cells(each))
        means = [str(figures["f1"]) for figures in report.scores.values()]
        output.rows.append([path, *means, str(len(cells.keys() - {NOT_AVERAGED}))])
        header = ["language", "questions", *(f"{kind} {title}" for kind in report.scores for title in HEADER[:4])]
        output.more.extend(["", path, *aligned([header, *cells.values()])])
        output.signatures.append(str(report.signature))
        output.record[path] = report.to_json()
    return output


def _settings(args: argparse.Namespace) -> dict[str, int]:
    return {"annotators": args.annotators, "bootstrap_samples": args.bootstrap_samples, "seed": args.seed}


def _cells(figures: Mapping[str, Any]) -> list[str]:
    """F1, precision, recall and the threshold."""
    return [*(written(name, figures[name]) for name in ("f1", "precision", "recall")), digits(figures["threshold"])]


def _check_predictions(questions: Questions, path: str) -> list[str]:
    """Notes on what lacks a prediction or a question; ValueError if nothing matches."""
    ids = questions.lines[path].keys()
    present = {language for i, language in questions.languages.items() if i in ids}
    if not present:
        raise ValueError(f"{path}: none of its {len(ids)} predictions is of a question of the references")
    notes = []
    if absent := sorted({*questions.languages.values()} - present):
        notes.append(f"{path}: no predictions in {', '.join(absent)}; the mean is over the other languages")
    if missing := sum(language in present and i not in ids for i, language in questions.languages.items()):
        notes.append(f"{path}: {missing} questions have no prediction; those without answer count as answered wrongly")
    if extra := len(ids - questions.golds.keys()):
        notes.append(f"{path}: {extra} predictions are of questions that the references lack, and do not count")
    return notes
