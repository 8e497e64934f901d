"""Exact match and F1 of answers to questions of one's own, and the share of right paragraphs.

Reads the lines of `hat predict` for the kinds `qa` and `document_qa`. Answers are compared as in SQuAD 2.0. The answer
of an annotation is its yes or no, or the text from its first to its last span, as in training. A question has an answer
if an annotation has one; else the empty text is right.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice

from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.data.record import Annotation, Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.files import by_id, check_joined, json_lines
from hat_fairseq.scoring.report import Interval, Report, aligned, resampling
from hat_fairseq.scoring.squad import score_answers

HYPOTHESES = ".jsonl of hat predict or hat classify for the kinds qa and document_qa"
REFERENCES = ".jsonl with answers or annotations: your own examples, or text/SPLIT.jsonl of hat preprocess"
SEVERAL_REFERENCES = False

#: The columns of the table by the names of the figures.
COLUMNS = {
    "exact": "exact",
    "f1": "F1",
    "HasAns_exact": "answer: exact",
    "HasAns_f1": "answer: F1",
    "NoAns_exact": "no answer",
    "yes_no": "yes or no",
    "paragraph": "paragraph",
}


@dataclass(frozen=True)
class Gold:
    """The accepted answers to a question, none if it has no answer, and the annotators' paragraphs."""

    answers: tuple[str, ...]
    yes_no: bool = False  # an accepted answer is yes or no
    paragraphs: frozenset[int] | None = None  # None for the kind `qa`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are no other options."""


def score(args: argparse.Namespace) -> Report:
    """A row for each system, and the signature."""
    (wanted,) = args.references
    golds = read_golds(wanted)
    with_answer, yes_no = sum(bool(g.answers) for g in golds.values()), sum(g.yes_no for g in golds.values())
    drawn = resampling(args.bootstrap_samples, args.seed, "questions")
    counts = f"{len(golds)}, with an answer: {with_answer}, of these yes or no: {yes_no}"
    signature = f"answers as in SQuAD 2.0 | bootstrap: {drawn} | questions: {counts}"
    rows, record = [["", *COLUMNS.values()]], {}
    for path in args.hypotheses:
        predictions = by_id(path, json_lines(path), Fields)
        check_joined(predictions, golds, (path, wanted))
        figures = score_questions(predictions, golds, args.bootstrap_samples, args.seed)
        cells = {name: f"{each:.2f}" if isinstance(each, float) else str(each) for name, each in figures.items()}
        rows.append([path, *(cells.get(name, "-") for name in COLUMNS)])
        plain = {name: each if isinstance(each, float) else asdict(each) for name, each in figures.items()}
        record[path] = {"scores": plain, "signature": signature}
    return Report([*aligned(rows), signature], [], record)


def score_questions(
    predictions: Mapping[str, Fields], golds: Mapping[str, Gold], samples: int, seed: int
) -> dict[str, float | Interval]:
    """The figures (x 100) by the names of `COLUMNS`, without those that no question has."""
    texts = {identifier: fields.text("answer") for identifier, fields in predictions.items()}
    report = score_answers(texts, {i: gold.answers for i, gold in golds.items()}, samples=samples, seed=seed)
    figures: dict[str, float | Interval] = {**report.scores, **report.intervals}
    if yes_no := {i: gold.answers for i, gold in golds.items() if gold.yes_no}:
        figures["yes_no"] = score_answers(texts, yes_no, samples=0).scores["exact"]
    chosen = {i: gold.paragraphs for i, gold in golds.items() if gold.paragraphs is not None}
    if chosen:
        right = sum(predictions[i].record.get("paragraph") in (numbers or {None}) for i, numbers in chosen.items())
        figures["paragraph"] = 100 * right / len(chosen)
    return {name: figures[name] for name in COLUMNS if name in figures}


def read_golds(path: str) -> dict[str, Gold]:
    """The gold answers of each question; ValueError for other files, and where answers are not known."""
    kind = next(("document_qa" for _, line in islice(read_json_lines(path), 1) if "paragraphs" in line), "qa")
    golds = {record.id: _gold(record) for record in read_records(path, kind)}
    if not golds:
        raise ValueError(f"{path} is empty: nothing to score")
    return golds


def _gold(record: Record) -> Gold:
    if record.annotations is not None:
        answers = [answer for each in record.annotations if (answer := _answer(each, record.sentences or ()))]
        yes_no = any(each.yes_no for each in record.annotations)
        paragraphs = frozenset(each.paragraph for each in record.annotations if each.paragraph is not None)
        return Gold(tuple(answers), yes_no, paragraphs)
    if record.answers is None:
        raise ValueError(f"{record.name} has no answers or annotations, so its prediction cannot be scored")
    return Gold(tuple(answer.text for answer in record.answers))


def _answer(annotation: Annotation, paragraphs: tuple[str, ...]) -> str | None:
    """The short answer; None if there is none."""
    if annotation.yes_no or not annotation.spans:
        return annotation.yes_no
    first, last = min(span.start for span in annotation.spans), max(span.end for span in annotation.spans)
    return paragraphs[annotation.paragraph or 0][first:last]
