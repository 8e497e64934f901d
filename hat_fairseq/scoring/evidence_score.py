"""`hat score evidence`: predictions and references from files, joined by document id, and baselines beside them."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.kinds.evidence import (
    Evidence,
    EvidenceKind,
    EvidenceOptions,
    EvidencePrediction,
    Unit,
    by_number,
    evidence_of,
    passages,
    units_of,
)
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.scoring import baselines
from hat_fairseq.scoring.evidence import FIGURES, Found, System, compare, f1
from hat_fairseq.scoring.files import check_joined, is_empty, read_by_id
from hat_fairseq.scoring.report import Interval, Output, Signature, aligned

WITHOUT_TEXT = "documents_without_text"


@dataclass(frozen=True)
class Reference:
    """A document with its questions.

    Attributes:
        units, texts: of the turns or sentences that have text, with roles.
        evidence: for each question the numbers of the units that answer it; None where that is not known.
    """

    record: Evidence
    units: list[Unit]
    texts: list[str]
    evidence: list[set[int]] | None

    @property
    def count(self) -> int:
        """Returns the number of turns or sentences, with and without text."""
        return len(self.units if self.record.text is not None else self.record.elements or ())

    @property
    def gold(self) -> np.ndarray:
        """Returns (Q, N): is a unit evidence; ValueError where that is not known."""
        if self.evidence is None:
            raise ValueError(f"{self.record.name} has neither evidence nor spans, so it cannot be scored")
        return np.array([[unit.number in numbers for unit in self.units] for numbers in self.evidence])


def read_references(path: str, counts: Counter[str]) -> dict[str, Reference]:
    """Reads records of the kind `evidence` by their ids; ValueError for none, or running text without a pipeline.

    Documents without text, or with a question without text, are left out and counted.
    """
    references = {}
    settings = _settings(path)
    for record in read_records(path, EvidenceKind.name):
        assert isinstance(record, Evidence)
        if record.text is not None and settings.splitter == "given":
            raise ValueError(
                f"{record.name} has running text, whose sentences are not known here: take text/SPLIT.jsonl of "
                "hat preprocess, beside whose folder text is bin, or give sentences"
            )
        try:
            prepared = EvidenceKind().prepare(record, settings, Counter())
        except EmptyDocumentError:
            counts[WITHOUT_TEXT] += 1
            continue
        units, sentences = units_of(prepared, settings), prepared.texts[-1].sentences
        evidence = evidence_of(record, units, Counter()) if record.gold_value is not None else None
        references[record.id] = Reference(record, units, [sentence.text for sentence in sentences], evidence)
    if not references:
        raise ValueError(f"{path} is empty: nothing to score")
    return references


def _settings(path: str) -> Settings:
    """What divides running text as `hat preprocess` did, if the file is of its folder `text`."""
    data = Path(path).resolve().parent.with_name("bin")
    return TextPipeline.load(data).settings if (data / FILE_NAME).is_file() else Settings(EvidenceKind.name)


def read_systems(path: str, references: Mapping[str, Reference], wanted: str) -> dict[str, System]:
    """Reads predictions; ValueError for other documents, questions or numbers of units than the references have."""
    predictions = read_by_id(path, lambda fields: fields)
    predictions = {name: fields for name, fields in predictions.items() if not is_empty(fields)}
    check_joined(predictions, references, (path, wanted))
    return {name: _system(predictions[name], reference) for name, reference in references.items()}


def _system(fields: Fields, reference: Reference) -> System:
    threshold, objects = _probability(fields, "threshold"), fields.objects("questions")
    asked = reference.record.questions
    if len(objects) != len(asked):
        raise fields.error(f"{len(objects)} questions, and {reference.record.name} has {len(asked)}")
    answers = []
    for number, (each, question) in enumerate(zip(objects, asked, strict=True), start=1):
        each.where = f"{fields.where}: question {number}"
        if each.text("question") != question:
            raise each.error(f"it is {each.text('question')!r:.80}, and in {reference.record.name} {question!r:.80}")
        answers.append(Found(_probabilities(each, reference), list(_passages(each, reference))))
    return System(threshold, answers)


def _probability(fields: Fields, name: str, *value: Any) -> float:
    """The value, or that under a key; ValueError unless it is a number from 0 to 1."""
    number: Any = value[0] if value else fields.record.get(name)
    if type(number) not in (int, float) or not 0 <= number <= 1:
        raise fields.error(f"{name} must be a number from 0 to 1, not {number!r:.60}")
    return float(number)


def _probabilities(question: Fields, reference: Reference) -> list[float | None]:
    values, count = question.get("probabilities", list), reference.count
    if reference.record.text is not None:  # sentences that were truncated are not there
        values = values + [None] * (count - len(values))
    if len(values) != count:
        raise question.error(
            f"{len(values)} probabilities, and {reference.record.name} has {count} turns or sentences; were they "
            "divided otherwise?"
        )
    return [None if value is None else _probability(question, "each probability", value) for value in values]


def _passages(question: Fields, reference: Reference) -> Iterable[tuple[int, int]]:
    for each in question.objects("passages"):
        first, last = each.get("first", int), each.get("last", int)
        if not 0 <= first <= last < reference.count:
            raise question.error(f"the passage {first} to {last} is none of 0 to {reference.count - 1}")
        yield first, last


def predict(reference: Reference, scores: np.ndarray, threshold: float) -> EvidencePrediction:
    """Returns the prediction that `hat predict` would write for (Q, N) probabilities."""
    record, units = reference.record, reference.units
    questions = [
        {
            "question": question,
            "passages": passages(record, units, row, EvidenceOptions(threshold)),
            "probabilities": by_number(units, row, record),
        }
        for question, row in zip(record.questions, scores, strict=True)
    ]
    return EvidencePrediction(record.id, threshold, questions)


def rounded(scores: np.ndarray) -> np.ndarray:
    """Rounds scores as in predictions, so that a threshold among them divides both alike."""
    return np.array([[round(score, 6) for score in row] for row in scores.tolist()])


def best_threshold(scores: Iterable[np.ndarray], gold: Iterable[np.ndarray]) -> float:
    """Finds the threshold with the best mean F1 over questions with evidence, among 200 quantiles of the scores.

    Args:
        scores, gold: (Q, N) of each document.
    """
    pairs = [(row, right) for both in zip(scores, gold, strict=True) for row, right in zip(*both, strict=True)]
    answered = [(row, right) for row, right in pairs if right.any()]
    if not answered:
        raise ValueError("no question has evidence, so no threshold can be chosen")
    thresholds = np.quantile(np.concatenate([row for row, _ in answered]), np.linspace(0, 1, 200)).tolist()
    means = [np.mean([f1(row >= threshold, right) for row, right in answered]) for threshold in thresholds]
    return float(thresholds[int(np.argmax(means))])


def baseline_systems(
    names: Sequence[str],
    references: Mapping[str, Reference],
    valid: Mapping[str, Reference],
    train: Mapping[str, Reference],
) -> dict[str, dict[str, System]]:
    """Makes the predictions of baselines for the references, by the title of each.

    Args:
        valid: documents that the thresholds are chosen on.
        train: documents that the weights of words are of.
    """
    words = baselines.Tfidf(text for each in train.values() for text in each.texts)
    systems = {}
    for name in names:
        title, score = baselines.BASELINES[name]

        def scores(of: Mapping[str, Reference], score: baselines.Scores = score) -> list[np.ndarray]:
            generator = np.random.default_rng(0)
            return [rounded(score(words, generator, each.record.questions, each.texts)) for each in of.values()]

        threshold = best_threshold(scores(valid), [each.gold for each in valid.values()])
        systems[title] = {
            each.record.id: _system(Fields(predict(each, row, threshold).to_json(), title), each)
            for each, row in zip(references.values(), scores(references), strict=True)
        }
    return systems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "also score systems that need no model: " + "; ".join(
        name if name == title else f"{name}: {title}" for name, (title, _) in baselines.BASELINES.items()
    )
    parser.add_argument("--baselines", nargs="+", choices=baselines.BASELINES, metavar="NAME", help=text)
    text = "choose the thresholds of baselines on these records (default: the references, which favours the baselines)"
    parser.add_argument("--valid", metavar="FILE", help=text)
    text = "fit TF-IDF on the words of these records (default: the references)"
    parser.add_argument("--train", metavar="FILE", help=text)


def score(args: argparse.Namespace) -> Output:
    """Returns a row for each system, the signature, and a table of differences from the first system."""
    names = list(dict.fromkeys(args.baselines or ()))
    if args.valid and not names:
        raise ValueError("--valid has no effect without --baselines: remove it")
    if args.train and not {"first", "tfidf", "chunk"}.intersection(names):
        raise ValueError("--train has no effect without --baselines first, tfidf or chunk: remove it")
    (wanted,) = args.references
    counts = Counter[str]()
    references = read_references(wanted, counts)
    gold = [each.gold for each in references.values()]
    if not any(each.any() for each in gold):
        raise ValueError(f"{wanted}: no question has evidence, so there is nothing to score")
    systems = {path: read_systems(path, references, wanted) for path in args.hypotheses}
    valid, train = (read_references(path, Counter()) if path else references for path in (args.valid, args.train))
    systems |= baseline_systems(names, references, valid, train) if names else {}
    numbers = [[unit.number for unit in each.units] for each in references.values()]
    reports = compare(
        {name: [system[identifier] for identifier in references] for name, system in systems.items()},
        [[set(np.array(own)[row].tolist()) for row in rows] for own, rows in zip(numbers, gold, strict=True)],
        units=numbers,
        bootstrap_samples=args.bootstrap_samples,
        seed=args.seed,
    )
    signature = next(iter(reports.values())).signature
    if names:
        used = {"baselines": f"threshold of {args.valid or wanted}, words of {args.train or wanted}"}
        signature = Signature(used | signature.settings, signature.title)
    rows = [["", *FIGURES], *([name, *map(str, each.scores.values())] for name, each in reports.items())]
    more = [[f"minus {args.hypotheses[0]}", *FIGURES]]
    more += [[name, *map(_signed, each.differences.values())] for name, each in reports.items() if each.differences]
    record: dict[str, Any] = {}
    for name, each in reports.items():
        fields = each.to_json()
        record[name] = {"figures": fields["scores"], "signature": str(signature)}
        if each.differences:
            record[name]["differences"] = fields["differences"]
    below = ["", *aligned(more)] if len(more) > 1 else []
    notes = _notes(args, references)
    if without := counts[WITHOUT_TEXT]:
        notes.append(f"{without} documents have no text and are left out")
    return Output(rows, [str(signature)], below, notes, record)


def _signed(interval: Interval) -> str:
    limits = "" if interval.low is None else f" [{interval.low:+.2f}, {interval.high:+.2f}]"
    return f"{interval.mean:+.2f}{limits}"


def _notes(args: argparse.Namespace, references: Mapping[str, Reference]) -> list[str]:
    """What of the evidence has no text, and thresholds that are chosen on what they are used for."""
    counts = Counter[str]()
    for each in references.values():
        evidence_of(each.record, each.units, counts)
    without = counts["evidence_without_text"]
    notes = [f"{without} units or spans of the evidence have no text and are left out"] if without else []
    if args.baselines and not args.valid:
        notes.append(
            "the thresholds of the baselines are the best for the references, which favours them: give --valid"
        )
    return notes
