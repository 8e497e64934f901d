"""Average precision, F1 and passage F1 of the turns or sentences that answer questions, joined by document id.

A unit is a turn or sentence with text. Over the questions that have evidence:

    average precision   mean of the precision at each unit that is evidence, in the order of the probabilities. Equal
                        ones stay in the order of the document. Units without probability, which were truncated, come
                        last in this order; the mean over questions
    F1                  2 TP / (2 TP + FP + FN) of the units whose probability reaches the threshold of the
                        prediction; the mean over questions

and over the passages of all questions, also of those without evidence:

    passage precision   share of the predicted passages of whose units at least half are evidence
    passage recall      share of the gold passages of whose units at least half are in predicted passages
    passage F1          their harmonic mean

A gold passage is a maximal run of consecutive units that are evidence. Half, because with any overlap the whole
document as one passage would be right for every question. 0 / 0 is 0.

Legend: D documents, Q questions, N units, F figures.
"""

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from hat_fairseq.scoring import baselines
from hat_fairseq.scoring.files import check_joined, read_by_id
from hat_fairseq.scoring.report import Interval, Output, Report, Signature, aligned, bootstrap, check_counts, resampling

HALF = 0.5  # share of a passage that has to be evidence, or predicted
FIGURES = ("average precision", "F1", "passage precision", "passage recall", "passage F1")


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


@dataclass(frozen=True)
class Found:
    """What a system finds for a question: a probability for each turn or sentence, or None, and first and last ones."""

    probabilities: Sequence[float | None]
    passages: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class System:
    """What a system finds for the questions of a document."""

    threshold: float
    questions: Sequence[Found]


def read_references(path: str) -> dict[str, Reference]:
    """Reads records of the kind `evidence` by their ids; ValueError for none, or running text without a pipeline."""
    references = {}
    settings = _settings(path)
    for record in read_records(path, EvidenceKind.name):
        assert isinstance(record, Evidence)
        if record.text is not None and settings.splitter == "given":
            raise ValueError(
                f"{record.name} has running text, whose sentences are not known here: take text/SPLIT.jsonl of "
                "hat preprocess, beside whose folder text is bin, or give sentences"
            )
        prepared = EvidenceKind().prepare(record, settings, Counter())
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


def average_precision(scores: np.ndarray, gold: np.ndarray) -> float:
    """Computes the mean of the precision at each (N,) True unit, in the order of the scores; ties stay in order."""
    ranked = gold[np.argsort(-scores, kind="stable")]
    precisions = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    return float(precisions[ranked].mean())


def f1(chosen: np.ndarray, gold: np.ndarray) -> float:
    """Computes the F1 of (N,) units, of which one at least is chosen or gold."""
    return float(2 * (chosen & gold).sum() / (chosen.sum() + gold.sum()))


def gold_passages(gold: np.ndarray) -> list[np.ndarray]:
    """Returns the places of each maximal run of (N,) True units."""
    places = np.flatnonzero(gold)
    return np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []


def count_passages(gold: np.ndarray, predicted: Sequence[np.ndarray]) -> tuple[int, int, int, int]:
    """Counts predicted passages and the right ones among them, gold passages and the found ones among them.

    Args:
        gold: (N,) which units are evidence.
        predicted: (N,) for each predicted passage, which units are in it.
    """
    right = sum(bool(inside.any()) and gold[inside].mean() >= HALF for inside in predicted)
    expected, covered = gold_passages(gold), np.any([np.zeros_like(gold), *predicted], axis=0)
    return len(predicted), right, len(expected), sum(covered[places].mean() >= HALF for places in expected)


@dataclass(frozen=True, kw_only=True)
class EvidenceReport(Report):
    """The `FIGURES` (x 100) of one system with intervals, and their differences from the first system's."""

    differences: dict[str, Interval] | None = None  # None for the first system


def evidence(
    hypotheses: Sequence[System],
    references: Sequence[Sequence[Collection[int]]],
    *,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> EvidenceReport:
    """Scores what a system finds in documents for questions; `compare` does so for several systems.

    Args:
        hypotheses: of each document, what is found for its questions.
        references: of each document and question, the numbers from 0 of the turns or sentences that are evidence.
        units: of each document, the numbers of the turns or sentences that count; None for all of them.
        bootstrap_samples, seed: of the resampling of documents; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of documents or questions than in the references, numbers of turns that a document
            does not have, or no question with evidence.
    """
    options: dict[str, Any] = {"units": units, "bootstrap_samples": bootstrap_samples, "seed": seed}
    (report,) = compare({"": hypotheses}, references, **options).values()
    return report


def compare(
    systems: Mapping[str, Sequence[System]],
    references: Sequence[Sequence[Collection[int]]],
    *,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> dict[str, EvidenceReport]:
    """Returns the reports of systems by their names, with paired differences from the first system.

    The other arguments, and errors, are those of `evidence`.
    """
    for hypotheses in systems.values():
        check_counts(hypotheses=hypotheses, references=references, units=units)
    first = next(iter(systems.values()))
    numbers = list(map(_all_units, first)) if units is None else [list(each) for each in units]
    gold = [_gold(*each) for each in zip(range(1, len(numbers) + 1), references, numbers, strict=True)]
    answered, asked = sum(int(each.any(axis=1).sum()) for each in gold), sum(map(len, references))
    if not answered:
        raise ValueError("no question has evidence, so there is nothing to score")
    sums = {
        name: np.array([sums_of(*each) for each in zip(gold, numbers, system, strict=True)])
        for name, system in systems.items()
    }
    figures, differences = _intervals(sums, bootstrap_samples, seed)
    settings = {
        "bootstrap": resampling(bootstrap_samples, seed, "documents"),
        "questions": f"{answered} with evidence of {asked}",
        "documents": str(len(references)),
    }
    return {
        name: EvidenceReport(
            scores=dict(zip(FIGURES, row, strict=True)),
            signature=Signature(settings, "evidence"),
            differences=dict(zip(FIGURES, differences[name], strict=True)) if name in differences else None,
        )
        for name, row in figures.items()
    }


def _all_units(system: System) -> list[int]:
    return list(range(max((len(each.probabilities) for each in system.questions), default=0)))


def _gold(number: int, questions: Sequence[Collection[int]], units: Sequence[int]) -> np.ndarray:
    """(Q, N): is a unit evidence."""
    if extra := sorted({each for question in questions for each in question} - set(units)):
        raise ValueError(f"document {number} has no turn or sentence {extra[0]}, which is evidence")
    marks = [[unit in question for unit in units] for question in questions]
    return np.array(marks, dtype=bool).reshape(-1, len(units))


def sums_of(gold: np.ndarray, units: Sequence[int], system: System) -> np.ndarray:
    """Computes what figures are made of: (7,) sums over the questions of a document.

    Questions with evidence, their average precision, and their F1; predicted passages and the right ones among them,
    gold passages and the found ones among them.

    Args:
        gold: (Q, N) is a unit evidence.
        units: (N,) their numbers.

    Raises:
        ValueError: other numbers of questions or probabilities.
    """
    sums, numbers = np.zeros(7), np.array(units)
    if len(system.questions) != len(gold):
        raise ValueError(f"{len(system.questions)} questions are answered, and the document has {len(gold)}")
    for right, answer in zip(gold, system.questions, strict=True):
        if units and len(answer.probabilities) <= max(units):
            raise ValueError(f"{len(answer.probabilities)} probabilities, and the document has a turn {max(units)}")
        scores = np.array([-1 if (p := answer.probabilities[number]) is None else p for number in numbers])
        if right.any():
            sums[:3] += 1, average_precision(scores, right), f1((scores >= 0) & (scores >= system.threshold), right)
        predicted = [(first <= numbers) & (numbers <= last) for first, last in answer.passages]
        sums[3:] += count_passages(right, predicted)
    return sums


def figures_of(sums: np.ndarray) -> np.ndarray:
    """Computes the `FIGURES`, x 100, from (D, 7) sums of documents."""
    questions, precisions, f1s, predicted, right, expected, recalled = sums.sum(axis=0)
    precision, recall = right / max(predicted, 1), recalled / max(expected, 1)
    harmonic = 2 * precision * recall / (precision + recall) if right else 0.0
    return 100 * np.array([precisions / max(questions, 1), f1s / max(questions, 1), precision, recall, harmonic])


def _intervals(
    systems: Mapping[str, np.ndarray], samples: int, seed: int
) -> tuple[dict[str, list[Interval]], dict[str, list[Interval]]]:
    """Computes the `FIGURES` of each system, and the paired differences of the others from the first.

    Args:
        systems: (D, 7) sums of the same documents, by name.
        samples, seed: see `bootstrap`.
    """
    first, *others = systems
    pairs = {name: np.stack([systems[first], systems[name]], axis=1) for name in others}
    return (
        {name: bootstrap(sums, figures_of, samples, seed) for name, sums in systems.items()},
        {name: bootstrap(pair, _difference_of, samples, seed) for name, pair in pairs.items()},
    )


def _difference_of(drawn: np.ndarray) -> np.ndarray:
    return figures_of(drawn[:, 1]) - figures_of(drawn[:, 0])


def read_systems(path: str, references: Mapping[str, Reference], wanted: str) -> dict[str, System]:
    """Reads predictions; ValueError for other documents, questions or numbers of units than the references have."""
    predictions = read_by_id(path, lambda fields: fields)
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
    references = read_references(wanted)
    gold = [each.gold for each in references.values()]
    if not any(each.any() for each in gold):
        raise ValueError(f"{wanted}: no question has evidence, so there is nothing to score")
    systems = {path: read_systems(path, references, wanted) for path in args.hypotheses}
    valid, train = (read_references(path) if path else references for path in (args.valid, args.train))
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
    return Output(rows, [str(signature)], below, _notes(args, references), record)


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
