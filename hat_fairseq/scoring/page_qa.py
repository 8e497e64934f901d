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
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds.document_questions import DocumentQuestionKind
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import check_joined, read_by_id
from hat_fairseq.scoring.official import PageAnswer, Spans, gold_answers, meta_of, page_answer
from hat_fairseq.scoring.report import Interval, Report, aligned, bootstrap, digits, resampling

TARGETS = (0.5, 0.75, 0.9)  # precisions of recall at precision
NOT_AVERAGED = "english"
HEADER = ("F1", "precision", "recall", "threshold", *(f"R@P>={target:g}" for target in TARGETS), "F1 of all")


class Outcome(NamedTuple):
    """Counts of one question, which are added up, and the score of its prediction."""

    gold: bool  # the question has an answer
    predicted: bool
    value: float  # 0 to 1
    score: float


def outcomes(
    golds: Sequence[PageAnswer], prediction: tuple[PageAnswer, float, float] | None, annotators: int, in_bytes: bool
) -> tuple[Outcome, Outcome]:
    """Returns the outcomes of passage and short answer; `prediction`: the answer and its two scores.

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
    text = "a question has an answer if N annotators gave one; 1 for parts with one annotation (default: %(default)s)"
    parser.add_argument("--annotators", type=int, default=2, metavar="N", help=text)


class Scored:
    """The outcomes of a dataset's questions for each system, and what the report says of all systems."""

    def __init__(self, dataset: str, title: str, args: argparse.Namespace) -> None:
        if args.annotators < 1:
            raise ValueError(f"--annotators must be at least 1, not {args.annotators}")
        self.args, in_bytes, few = args, dataset == "tydi_qa", 0
        self.lines = {path: read_by_id(path, lambda fields: fields) for path in args.hypotheses}
        self.languages: dict[str, str] = {}  # of each question, by its id; "" for Natural Questions
        self.outcomes: dict[str, dict[str, tuple[Outcome, Outcome]]] = {path: {} for path in self.lines}
        self.report = Report()
        for record in read_records(args.references[0], DocumentQuestionKind.name):
            golds = gold_answers(dataset, record)
            few += len(golds) < args.annotators
            self.languages[record.id] = meta_of(dataset, record).text("language") if in_bytes else ""
            for path, lines in self.lines.items():
                prediction = _prediction(dataset, record, lines[record.id]) if record.id in lines else None
                self.outcomes[path][record.id] = outcomes(golds, prediction, args.annotators, in_bytes)
        if not self.languages:
            raise ValueError(f"{args.references[0]}: no questions, so there is nothing to score")
        if few:
            text = f"{few} of {len(self.languages)} questions have fewer than {args.annotators} annotations, so they "
            self.report.notes.append(f"{text}have no answer; --annotators 1 is for parts with one annotation")
        drawn = resampling(args.bootstrap_samples, args.seed, "questions")
        settings = f"annotators: {args.annotators} | threshold: of the best F1 | bootstrap: {drawn}"
        self.signature = f"{title} | {settings} | questions: {len(self.languages)}"
        self.report.signatures.append(self.signature)

    def figures(self, path: str, kind: int) -> tuple[Interval, dict[str, dict[str, Any]]]:
        """Returns the mean best F1 (x 100) over languages with predictions, without English, and all their figures.

        `kind`: 0 passages, 1 short answers. In each resampled test set a language has its own threshold, and one
        without any resampled question is left out.
        """
        languages = sorted({self.languages[i] for i in self.lines[path] if i in self.languages})
        ids = [i for i, language in self.languages.items() if language in languages]
        curves = {}
        for language in languages:
            numbers = [number for number, i in enumerate(ids) if self.languages[i] == language]
            curves[language] = AnswerCurve([self.outcomes[path][ids[number]][kind] for number in numbers], numbers)

        def mean(drawn: np.ndarray) -> np.ndarray:
            weights = np.bincount(drawn, minlength=len(ids))
            averaged = [curve for language, curve in curves.items() if language != NOT_AVERAGED]
            present = [curve.points(weights)[0].max() for curve in averaged if weights[curve.questions].any()]
            return np.array([100 * sum(present) / max(len(present), 1)])

        (f1,) = bootstrap(np.arange(len(ids)), mean, self.args.bootstrap_samples, self.args.seed)
        return f1, {language: curve.best() for language, curve in curves.items()}


def _prediction(dataset: str, record: Record, fields: Fields) -> tuple[PageAnswer, float, float]:
    try:
        scores = float(fields.record["paragraph_score"]), float(fields.record["answer_score"])
        return page_answer(dataset, record, fields.record), *scores
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise fields.error(f"no prediction of hat predict for this question ({error!r})") from error


def score_natural_questions(args: argparse.Namespace) -> Report:
    """Returns a row for the long and one for the short answers of each system, then the signature."""
    scored = Scored("natural_questions", "Natural Questions", args)
    scored.report.rows.append(["", "", *HEADER])
    for path, lines in scored.lines.items():
        check_joined(lines, scored.languages, (path, args.references[0]))
        scores = {}
        for kind, name in enumerate(("long", "short")):
            f1, languages = scored.figures(path, kind)
            figures = languages[""]
            others = [f"{figure:.2f}" for figure in (*figures["recall_at_precision"].values(), figures["f1_of_all"])]
            scored.report.rows.append([path, name, str(f1), *_cells(figures)[1:], *others])
            scores[name] = figures | {"f1": asdict(f1)}
        scored.report.record[path] = {"scores": scores, "signature": scored.signature}
    return scored.report


def score_tydi_qa(args: argparse.Namespace) -> Report:
    """Returns the means of each system and the signature, then a table of languages for each system."""
    scored = Scored("tydi_qa", "TyDi QA, primary tasks", args)
    sizes, kinds = Counter(scored.languages.values()), ("passage", "minimal")
    scored.report.rows.append(["", *(f"{kind} F1" for kind in kinds), "languages without English"])
    for path in args.hypotheses:
        scored.report.notes.extend(_check_predictions(scored, path))
        scores, row = {}, [path]
        cells: dict[str, list[str]] = {}  # by language
        for number, kind in enumerate(kinds):
            f1, languages = scored.figures(path, number)
            averaged = [figures for language, figures in languages.items() if language != NOT_AVERAGED]
            means = {n: sum(each[n] for each in averaged) / max(len(averaged), 1) for n in ("precision", "recall")}
            scores[kind] = {"f1": asdict(f1), **means, "languages": languages}
            row.append(str(f1))
            for language, figures in languages.items():
                cells.setdefault(language, [language, str(sizes[language])]).extend(_cells(figures))
        scored.report.rows.append([*row, str(len(averaged))])
        header = ["language", "questions", *(f"{kind} {title}" for kind in kinds for title in HEADER[:4])]
        scored.report.more.extend(["", path, *aligned([header, *cells.values()])])
        scored.report.record[path] = {"scores": scores, "signature": scored.signature}
    return scored.report


def _cells(figures: dict[str, Any]) -> list[str]:
    """F1, precision, recall and the threshold."""
    return [*(f"{figures[name]:.2f}" for name in ("f1", "precision", "recall")), digits(figures["threshold"])]


def _check_predictions(scored: Scored, path: str) -> list[str]:
    """Notes on what lacks a prediction or a question; ValueError if nothing matches."""
    ids = scored.lines[path].keys()
    present = {language for i, language in scored.languages.items() if i in ids}
    if not present:
        raise ValueError(f"{path}: none of its {len(ids)} predictions is of a question of the references")
    notes = []
    if absent := sorted({*scored.languages.values()} - present):
        notes.append(f"{path}: no predictions in {', '.join(absent)}; the mean is over the other languages")
    if missing := sum(language in present and i not in ids for i, language in scored.languages.items()):
        notes.append(f"{path}: {missing} questions have no prediction; those without answer count as answered wrongly")
    if extra := len(ids - scored.languages.keys()):
        notes.append(f"{path}: {extra} predictions are of questions that the references lack, and do not count")
    return notes
