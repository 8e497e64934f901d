"""F1 of passages and minimal answers, by the definition of the primary tasks of TyDi QA.

Clark et al. 2020, and the released `tydi_eval.py`. A question has an answer if at least two annotators gave one. A
passage is right if any annotator chose it. A minimal answer counts as the F1 of its bytes with those of the annotator
it agrees with best, and 1 for any annotator's yes or no. Each language has a threshold of its own; the result is the
mean over the languages with predictions, without English.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from .answer_scores import AnswerCurve, BestFigures, Outcome, best_f1, check_annotations, signature
from .answer_scores import add_arguments as add_arguments
from .report import Interval, Report, aligned
from .tydi_qa_files import (
    Offsets,
    TydiAnswer,
    TydiPrediction,
    TydiQuestion,
    read_tydi_annotations,
    read_tydi_predictions,
)

HYPOTHESES = "predictions in the format of tydi_eval.py, .jsonl"
REFERENCES = "development part of the release, .jsonl or .jsonl.gz, or text/SPLIT.jsonl of hat preprocess tydi_qa"
SEVERAL_REFERENCES = True

TITLES = ("F1", "precision", "recall", "threshold")
NOT_AVERAGED = "english"


@dataclass(frozen=True)
class TydiScores:
    """Figures (x 100) of one kind of answers: the means over languages without English, and those of each language."""

    f1: Interval
    precision: float
    recall: float
    languages: dict[str, BestFigures]


def passage_outcome(annotations: Sequence[TydiAnswer], prediction: TydiPrediction | None, annotators: int) -> Outcome:
    """Whether `annotators` chose a passage, whether one is predicted, and whether any annotator chose it."""
    golds = [annotation.passage for annotation in annotations if annotation.passage is not None]
    if prediction is None:
        return _missing(len(golds) >= annotators)
    passage, has_answer = prediction.answer.passage, len(golds) >= annotators
    return Outcome(has_answer, passage is not None, float(has_answer and passage in golds), prediction.passage_score)


def minimal_outcome(annotations: Sequence[TydiAnswer], prediction: TydiPrediction | None, annotators: int) -> Outcome:
    """The same for minimal answers, a yes or no among them; the value is F1 of bytes."""
    has_answer = sum(gold.minimal is not None or gold.yes_no != "none" for gold in annotations) >= annotators
    if prediction is None:
        return _missing(has_answer)
    answer = prediction.answer
    value = max(_agreement(answer, gold) for gold in annotations) if has_answer else 0.0
    predicted = answer.minimal is not None or answer.yes_no != "none"
    return Outcome(has_answer, predicted, value, prediction.minimal_score)


def _agreement(answer: TydiAnswer, gold: TydiAnswer) -> float:
    return byte_f1(answer.minimal, gold.minimal) if answer.yes_no == "none" else float(answer.yes_no == gold.yes_no)


def _missing(has_answer: bool) -> Outcome:
    """`tydi_eval.py` counts a missing prediction as an answer with the score 0 where the question has none."""
    return Outcome(has_answer, not has_answer, 0.0, 0.0)


def byte_f1(ours: Offsets, theirs: Offsets) -> float:
    """F1 of two ranges of bytes; 0 without one of them."""
    if ours is None or theirs is None:
        return 0.0
    common = min(ours[1], theirs[1]) - max(ours[0], theirs[0])
    return 2 * common / (ours[1] - ours[0] + theirs[1] - theirs[0]) if common > 0 else 0.0


OUTCOMES = {"passage": passage_outcome, "minimal": minimal_outcome}


def score_answers(
    golds: Mapping[int, TydiQuestion], predictions: Mapping[int, TydiPrediction], kind: str, args: argparse.Namespace
) -> TydiScores:
    """Scores one kind of answers (of OUTCOMES) in all languages that have predictions."""
    languages = sorted({gold.language for gold in golds.values()} & {each.language for each in predictions.values()})
    ids = [i for i, gold in golds.items() if gold.language in languages]
    curves = {}
    for language in languages:
        numbers = [number for number, i in enumerate(ids) if golds[i].language == language]
        questions = [(golds[ids[number]].annotations, predictions.get(ids[number])) for number in numbers]
        curves[language] = AnswerCurve([OUTCOMES[kind](*question, args.annotators) for question in questions], numbers)
    best = {language: curve.best() for language, curve in curves.items()}
    averaged = [language for language in languages if language != NOT_AVERAGED]
    f1 = best_f1([curves[language] for language in averaged], len(ids), args.bootstrap_samples, args.seed)
    precision, recall = (
        sum(getattr(best[language], name) for language in averaged) / max(len(averaged), 1)
        for name in ("precision", "recall")
    )
    return TydiScores(f1, precision, recall, best)


def score(args: argparse.Namespace) -> Report:
    """The means of each system and the signature, then a table of languages for each system."""
    golds = read_tydi_annotations(args.references)
    notes = check_annotations([gold.annotations for gold in golds.values()], args)
    settings = signature("TyDi QA, primary tasks", len(golds), args)
    sizes = Counter(gold.language for gold in golds.values())
    rows, tables, record = [["", *(f"{kind} F1" for kind in OUTCOMES), "languages without English"]], [], {}
    for path in args.hypotheses:
        predictions = read_tydi_predictions(path)
        notes += check_predictions(golds, predictions, path)
        scores = {kind: score_answers(golds, predictions, kind, args) for kind in OUTCOMES}
        languages = scores["passage"].languages
        rows.append([path, *(str(each.f1) for each in scores.values()), str(len(languages.keys() - {NOT_AVERAGED}))])
        table = [["language", "questions", *(f"{kind} {title}" for kind in OUTCOMES for title in TITLES)]]
        for language in languages:
            cells = [cell for each in scores.values() for cell in each.languages[language].cells()]
            table.append([language, str(sizes[language]), *cells])
        tables += ["", path, *aligned(table)]
        record[path] = {"scores": {kind: asdict(each) for kind, each in scores.items()}, "signature": settings}
    return Report([*aligned(rows), settings, *tables], notes, record)


def check_predictions(golds: dict[int, TydiQuestion], predictions: dict[int, TydiPrediction], path: str) -> list[str]:
    """Notes on what lacks a prediction or a question; ValueError if nothing matches, or a language differs."""
    known = {i: prediction for i, prediction in predictions.items() if i in golds}
    if not known:
        raise ValueError(f"{path}: none of its {len(predictions)} predictions is of a question of the references")
    for i, prediction in known.items():
        if prediction.language != golds[i].language:
            raise ValueError(f"{path}: question {i} is in {golds[i].language}, not in {prediction.language}")
    notes = []
    languages = {gold.language for gold in golds.values()}
    if absent := sorted(languages - {prediction.language for prediction in predictions.values()}):
        notes.append(f"{path}: no predictions in {', '.join(absent)}; the mean is over the other languages")
    if missing := sum(gold.language not in absent and i not in known for i, gold in golds.items()):
        notes.append(f"{path}: {missing} questions have no prediction; those without answer count as answered wrongly")
    if extra := len(predictions) - len(known):
        notes.append(f"{path}: {extra} predictions are of questions that the references lack, and do not count")
    return notes
