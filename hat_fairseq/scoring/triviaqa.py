"""Exact match and F1 of answers to TriviaQA's questions on Wikipedia, by the definition of its authors.

Joshi et al. 2017, section 6. The rules of their `triviaqa_evaluation.py`: an answer is compared with every alias, in
lower case, without articles, with spaces for underscores and punctuation, and the best match counts; a question without
prediction counts as 0; predictions for other questions are ignored. Predictions for the pages of a question, whose ids
are `QUESTION--FILE`, become one: that with the lowest no-answer score, among those with a text.
"""

import argparse
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hat_fairseq.data.files import Fields, read_json
from hat_fairseq.scoring.files import is_lines, json_lines
from hat_fairseq.scoring.report import Report, aligned, bootstrap_mean, resampling
from hat_fairseq.scoring.squad import ARTICLES, word_f1
from hat_fairseq.scoring.squad_command import read_predictions

HYPOTHESES = "JSON {id: text}, or .jsonl with id, answer and (as hat predict writes it) no_answer_score"
REFERENCES = "qa/wikipedia-dev.json of the release, or text/SPLIT.jsonl of hat preprocess triviaqa"
SEVERAL_REFERENCES = False

_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are no other options."""


def normalize(text: str) -> str:
    """Lower case, spaces for underscores and punctuation, no articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(_SPACES)).split())


def exact(answer: str, gold: str) -> float:
    """1 if both are the same after `normalize`, else 0."""
    return float(normalize(answer) == normalize(gold))


def f1(answer: str, gold: str) -> float:
    """`word_f1` after `normalize`."""
    return word_f1(normalize(answer).split(), normalize(gold).split())


def score(args: argparse.Namespace) -> Report:
    """A line for each figure, then the signature; several systems below each other, each under its name."""
    (wanted,) = args.references
    golds = read_golds(wanted)
    report = Report([], [], {})
    drawn = resampling(args.bootstrap_samples, args.seed, "questions")
    signature = f"TriviaQA (Wikipedia) | bootstrap: {drawn} | questions: {len(golds)}"
    for path in args.hypotheses:
        answers = join_pages(*read_predictions(path), path)
        if others := answers.keys() - golds.keys():
            text = f"{len(others)} questions are not in {wanted} and do not count: {min(others)}"
            report.notes.append(f"{path}: {text}{', ...' if len(others) > 1 else ''}")
        if missing := golds.keys() - answers.keys():
            report.notes.append(f"{path}: {len(missing)} of {len(golds)} questions have no prediction and count 0")
        values = {name: _values(metric, answers, golds) for name, metric in (("exact_match", exact), ("f1", f1))}
        scores = {n: bootstrap_mean(each, args.bootstrap_samples, args.seed) for n, each in values.items()}
        counts = {"questions": len(golds), "predicted": len(golds) - len(missing)}
        report.lines.extend([path] * (len(args.hypotheses) > 1))
        report.lines.extend([*aligned([[name, str(value)] for name, value in (scores | counts).items()]), signature])
        figures = {name: asdict(interval) for name, interval in scores.items()}
        report.record[path] = {"scores": figures, **counts, "signature": signature}
    return report


def _values(metric: Any, answers: Mapping[str, str], golds: Mapping[str, Sequence[str]]) -> np.ndarray:
    """(N,) 0 to 100 of each question: the best match with a gold answer."""
    values = (max(metric(answers[i], gold) for gold in each) if i in answers else 0.0 for i, each in golds.items())
    return 100 * np.array(list(values))


def join_pages(texts: Mapping[str, str], odds: Mapping[str, float] | None, path: str) -> dict[str, str]:
    """The answer of each question; ValueError if pages of a question have answers, but no no-answer scores."""
    best: dict[str, str] = {}  # the id that a question's answer comes from
    for identifier in texts:
        question = identifier.partition("--")[0]
        if question not in best:
            best[question] = identifier
            continue
        if odds is None:
            raise ValueError(
                f"{path}: several answers to question {question!r} without no_answer_score, so none can be chosen; "
                "give the .jsonl of hat predict, or one answer for each question"
            )
        best[question] = min(best[question], identifier, key=lambda i: (not texts[i], odds[i]))
    return {question: texts[identifier] for question, identifier in best.items()}


def read_golds(path: str) -> dict[str, list[str]]:
    """The accepted answers of each question; ValueError for other files, with the place."""
    golds: dict[str, list[str]] = {}
    for question, answers in _stored(path) if is_lines(path) else _released(path):
        if not answers:
            raise ValueError(f"{path}: question {question!r} has no answers; give a file that has them")
        golds.setdefault(question, answers)
    if not golds:
        raise ValueError(f"{path} has no questions: nothing to score")
    return golds


def _stored(path: str) -> Iterator[tuple[str, list[str]]]:
    for where, line in json_lines(path):
        meta = Fields(Fields(line, where).get("meta", dict), f"{where}: meta")
        known = Fields(meta.get("triviaqa", dict), f"{where}: meta")
        yield known.text("question"), list(known.texts("answers"))


def _released(path: str) -> Iterator[tuple[str, list[str]]]:
    release = Fields(read_json(path), path)
    if release.record.get("Domain") != "Wikipedia":
        raise release.error(f"its Domain is {release.record.get('Domain')!r:.40}; only the part on Wikipedia is scored")
    for question in release.objects("Data"):
        if release.record.get("VerifiedEval") and not question.record.get("QuestionPartOfVerifiedEval"):
            continue
        answer = Fields(question.get("Answer", dict), f"{path}: Answer")
        humans = answer.texts("HumanAnswers") if "HumanAnswers" in answer else ()
        yield question.text("QuestionId"), [*answer.texts("NormalizedAliases"), *humans]
