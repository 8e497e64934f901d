"""Exact match and F1 of answers to questions, by the definition of SQuAD 2.0."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_json_lines
from hat_fairseq.scoring.classification_command import add_resampling
from hat_fairseq.scoring.columns import aligned
from hat_fairseq.scoring.label_files import check_joined
from hat_fairseq.scoring.squad import SquadReport, score_answers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--hypotheses",
        required=True,
        metavar="FILE",
        help="predictions.json {id: text}, or .jsonl with id, answer and (as hat predict writes it) no_answer_score",
    )
    parser.add_argument(
        "--references",
        required=True,
        metavar="FILE",
        help="SQuAD's own .json, or .jsonl with id and answers (text/SPLIT.examples.jsonl of hat preprocess)",
    )
    parser.add_argument(
        "--null-odds", metavar="FILE", help="null_odds.json {id: no-answer score}: also find the best threshold"
    )
    parser.add_argument(
        "--no-answer-threshold",
        type=float,
        default=1.0,
        metavar="X",
        help="a question with a higher no-answer score counts as unanswered (default: %(default)s, as SQuAD's)",
    )
    add_resampling(parser)
    parser.add_argument("--json", metavar="FILE", help="write scores and signature there as well")


def main(args: argparse.Namespace) -> int:
    """Print every figure of SQuAD's evaluation on a line of its own, then the signature."""
    predictions, odds = read_predictions(args.hypotheses)
    golds = read_golds(args.references)
    check_joined(predictions, golds, (args.hypotheses, args.references))
    if args.null_odds:
        odds = _numbers(_mapping(args.null_odds), args.null_odds)
    if odds is not None:
        check_joined(odds, golds, (args.null_odds or args.hypotheses, args.references))
    report = score_answers(predictions, golds, odds, args.no_answer_threshold, args.bootstrap_samples, args.seed)
    print(render(report))
    if args.json:
        Path(args.json).write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return 0


def render(report: SquadReport) -> str:
    """Return a line for each figure; exact and f1 with their intervals; then the signature."""
    rows = []
    for name, value in report.scores.items():
        plain = str(int(value)) if name.endswith("total") else f"{value:.2f}"
        rows.append([name, str(report.intervals.get(name, plain))])
    return "\n".join([*aligned(rows), report.signature])


def read_predictions(path: str) -> tuple[dict[str, str], dict[str, float] | None]:
    """Return the text of each question, and the no-answer scores if the file has them.

    Raises:
        ValueError: not what ``--hypotheses`` may be, naming file and line or question.
    """
    if not path.endswith((".jsonl", ".jsonl.gz")):
        return {key: _text(text, f"{path}: question {key!r}") for key, text in _mapping(path).items()}, None
    texts: dict[str, str] = {}
    odds: dict[str, Any] = {}
    for number, record in read_json_lines(path):
        identifier = _new_id(record, texts, f"{path}:{number}")
        texts[identifier] = _text(record.get("answer"), f"{path}:{number}: 'answer'")
        if "no_answer_score" in record:
            odds[identifier] = record["no_answer_score"]
    if odds and len(odds) < len(texts):
        raise ValueError(f"{path}: {len(odds)} of {len(texts)} lines have a no_answer_score: give all one, or none")
    return texts, _numbers(odds, path) if odds else None


def read_golds(path: str) -> dict[str, list[str]]:
    """Return the gold answers of each question, none for one that has no answer.

    Raises:
        ValueError: neither SQuAD's JSON nor JSON lines with answers; a question twice; no questions.
    """
    golds: dict[str, list[str]] = {}
    try:
        for where, record in _questions(path):
            identifier = _new_id(record, golds, where)
            golds[identifier] = [answer["text"] for answer in record["answers"]]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: found no questions with id and answers ({error!r}): SQuAD's JSON, or JSON lines with "
            '"id" and "answers": [{"text": ...}]'
        ) from error
    if not golds:
        raise ValueError(f"{path} is empty: nothing to score")
    return golds


def _questions(path: str) -> list[tuple[str, dict[str, Any]]]:
    if path.endswith((".jsonl", ".jsonl.gz")):
        return [(f"{path}:{number}", record) for number, record in read_json_lines(path)]
    articles = _mapping(path)["data"]
    return [(path, question) for a in articles for paragraph in a["paragraphs"] for question in paragraph["qas"]]


def _new_id(record: Mapping[str, Any], known: Mapping[str, Any], where: str) -> str:
    identifier = record["id"] if isinstance(record.get("id"), str) else None
    if identifier is None:
        raise ValueError(f"{where}: no 'id' among its keys {sorted(record)}, or it is no string")
    if identifier in known:
        raise ValueError(f"{where}: the id {identifier!r} for the second time")
    return identifier


def _mapping(path: str) -> dict[str, Any]:
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); JSON lines must be called .jsonl") from error
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
