"""Exact match and F1 of answers to questions, by the definition of SQuAD 2.0."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from hat_fairseq.data.files import read_json
from hat_fairseq.scoring.files import by_id, check_joined, is_lines, json_lines
from hat_fairseq.scoring.report import Report, aligned, digits
from hat_fairseq.scoring.squad import SquadReport, score_answers

HYPOTHESES = "predictions.json {id: text}, or .jsonl with id, answer and (as hat predict writes it) no_answer_score"
REFERENCES = "SQuAD's own .json, or .jsonl with id and answers (text/SPLIT.jsonl of hat preprocess)"
SEVERAL_REFERENCES = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "null_odds.json {id: no-answer score} of a single system: also find the best threshold"
    parser.add_argument("--null-odds", metavar="FILE", help=text)
    text = "a question with a higher no-answer score counts as unanswered (default: %(default)s, as SQuAD's)"
    parser.add_argument("--no-answer-threshold", type=float, default=1.0, metavar="X", help=text)


def score(args: argparse.Namespace) -> Report:
    """A line for each figure, then the signature; several systems below each other, each under its name."""
    if args.null_odds and len(args.hypotheses) > 1:
        raise ValueError("--null-odds belongs to a single file of --hypotheses")
    (wanted,) = args.references
    golds = read_golds(wanted)
    lines: list[str] = []
    record = {}
    for path in args.hypotheses:
        predictions, odds = read_predictions(path)
        check_joined(predictions, golds, (path, wanted))
        if args.null_odds:
            odds = _numbers(_json_object(args.null_odds), args.null_odds)
        if odds is not None:
            check_joined(odds, golds, (args.null_odds or path, wanted))
        report = score_answers(predictions, golds, odds, args.no_answer_threshold, args.bootstrap_samples, args.seed)
        lines += [path] * (len(args.hypotheses) > 1) + render(report)
        record[path] = asdict(report)
    return Report(lines, [], record)


def render(report: SquadReport) -> list[str]:
    rows = []
    for name, value in report.scores.items():
        plain = digits(value) if name.endswith("thresh") else f"{value:.{0 if name.endswith('total') else 2}f}"
        rows.append([name, str(report.intervals.get(name, plain))])
    return [*aligned(rows), report.signature]


def read_predictions(path: str) -> tuple[dict[str, str], dict[str, float] | None]:
    """The text of each question, and no-answer scores if the file has them; ValueError with the place in the file."""
    if not is_lines(path):
        return {key: _text(text, f"{path}: question {key!r}") for key, text in _json_object(path).items()}, None
    records = by_id(path, json_lines(path), lambda record, where: (record, where))
    texts = {i: _text(record.get("answer"), f"{where}: 'answer'") for i, (record, where) in records.items()}
    odds = {i: record["no_answer_score"] for i, (record, _) in records.items() if "no_answer_score" in record}
    if odds and len(odds) < len(texts):
        raise ValueError(f"{path}: {len(odds)} of {len(texts)} lines have a no_answer_score: give all one, or none")
    return texts, _numbers(odds, path) if odds else None


def read_golds(path: str) -> dict[str, list[str]]:
    """The gold answers of each question, none for one without answer; ValueError for other files, or an id twice."""
    try:
        return by_id(path, _questions(path), lambda record, where: [_text(a["text"], where) for a in record["answers"]])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: found no questions with id and answers ({error!r}): SQuAD's JSON, or JSON lines with "
            '"id" and "answers": [{"text": ...}]'
        ) from error


def _questions(path: str) -> Iterable[tuple[str, dict[str, Any]]]:
    if is_lines(path):
        return json_lines(path)
    articles = _json_object(path)["data"]
    return [(path, question) for a in articles for paragraph in a["paragraphs"] for question in paragraph["qas"]]


def _json_object(path: str) -> dict[str, Any]:
    try:
        record = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; JSON lines must be called .jsonl") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}: expected a JSON object, found a {type(record).__name__}")
    return record


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: expected a string, found {value!r:.60}")
    return value


def _numbers(odds: Mapping[str, Any], path: str) -> dict[str, float]:
    for identifier, value in odds.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{path}: question {identifier!r}: expected a number, found {value!r:.60}")
    return {identifier: float(value) for identifier, value in odds.items()}
