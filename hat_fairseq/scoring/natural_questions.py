"""F1 of long and short answers at the best threshold, by the definition of Natural Questions.

Kwiatkowski et al. 2019, and the released `nq_eval`. A question has an answer if at least two annotators gave one. A
long answer is right if any annotator gave the same span. A short answer is right if it is the set of spans of one
annotator, or any annotator's yes or no.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from .answer_scores import AnswerCurve, Outcome, best_f1, check_annotations, signature
from .answer_scores import add_arguments as add_arguments
from .files import check_joined
from .natural_questions_files import (
    NaturalAnswer,
    NaturalPrediction,
    Span,
    read_natural_annotations,
    read_natural_predictions,
)
from .report import Report, aligned

HYPOTHESES = "predictions in the format of nq_eval, .json"
REFERENCES = "parts of the release, .jsonl or .jsonl.gz, or text/SPLIT.jsonl of hat preprocess natural_questions"
SEVERAL_REFERENCES = True

HEADER = ["F1", "precision", "recall", "threshold", "R@P>=0.5", "R@P>=0.75", "R@P>=0.9", "F1 of all"]


def long_outcome(annotations: Sequence[NaturalAnswer], prediction: NaturalPrediction, annotators: int) -> Outcome:
    """Whether there are `annotators` long answers, whether there is a predicted one, and whether it is one of them."""
    golds = [annotation.long_answer for annotation in annotations if annotation.long_answer]
    answer, has_answer = prediction.answer.long_answer, len(golds) >= annotators
    right = has_answer and answer is not None and any(answer.same(gold) for gold in golds)
    return Outcome(has_answer, answer is not None, float(right), prediction.long_score)


def short_outcome(annotations: Sequence[NaturalAnswer], prediction: NaturalPrediction, annotators: int) -> Outcome:
    """The same for short answers; a yes or no counts as a short answer."""
    answer, has_answer = prediction.answer, sum(map(_has_short, annotations)) >= annotators
    predicted = _has_short(answer)
    right = has_answer and predicted and any(_same_short(answer, gold) for gold in annotations)
    return Outcome(has_answer, predicted, float(right), prediction.short_score)


def _has_short(answer: NaturalAnswer) -> bool:
    return bool(answer.short_answers) or answer.yes_no != "none"


def _same_short(answer: NaturalAnswer, gold: NaturalAnswer) -> bool:
    """The same yes or no, or sets of spans each of which is on the other side."""
    if answer.yes_no != "none":
        return answer.yes_no == gold.yes_no
    sides = answer.short_answers, gold.short_answers
    return all(any(a.same(b) for b in theirs) for ours, theirs in (sides, sides[::-1]) for a in ours)


def score(args: argparse.Namespace) -> Report:
    """A row for the long and one for the short answers of each system, then the signature."""
    golds = read_natural_annotations(args.references)
    notes = check_annotations(golds.values(), args)
    settings = signature("Natural Questions", len(golds), args)
    rows, record = [["", "", *HEADER]], {}
    for path in args.hypotheses:
        predictions = read_natural_predictions(path)
        check_joined(predictions, golds, (path, " ".join(args.references)))
        scores = {}
        for kind, outcome in (("long", long_outcome), ("short", short_outcome)):
            curve = AnswerCurve([outcome(golds[i], predictions[i], args.annotators) for i in golds])
            best, interval = curve.best(), best_f1([curve], len(golds), args.bootstrap_samples, args.seed)
            others = [f"{figure:.2f}" for figure in (*best.recall_at_precision.values(), best.f1_of_all)]
            rows.append([path, kind, str(interval), *best.cells()[1:], *others])
            scores[kind] = asdict(best) | {"f1": asdict(interval)}
        if lost := _without_counterpart(golds.values(), predictions.values()):
            reason = "they have only bytes or only tokens, and no reference has those"
            notes.append(f"{path}: {lost} spans are wrong because {reason}")
        record[path] = {"scores": scores, "signature": settings}
    return Report([*aligned(rows), settings], notes, record)


def _without_counterpart(golds: Iterable[Sequence[NaturalAnswer]], predictions: Iterable[NaturalPrediction]) -> int:
    """Number of predicted spans in a kind of offsets that no reference has: simplified references have no bytes."""
    known = [span for annotations in golds for annotation in annotations for span in _spans(annotation)]
    bytes_known, tokens_known = any(span.byte for span in known), any(span.token for span in known)
    spans = [span for prediction in predictions for span in _spans(prediction.answer)]
    return sum(not (span.byte and bytes_known or span.token and tokens_known) for span in spans) if known else 0


def _spans(answer: NaturalAnswer) -> Iterable[Span]:
    return filter(None, (answer.long_answer, *answer.short_answers))
