"""`hat score classification --baselines`: baselines beside the systems, and warnings about what people stumble on."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from hat_fairseq.data.formats import opened
from hat_fairseq.data.kinds.labels import LabelledSegments, LabelledText
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.baselines import OF_DOCUMENTS, OF_SEGMENTS, Fitted, LabelledDocument, baselines
from hat_fairseq.scoring.files import splits_beside
from hat_fairseq.scoring.report import Interval, bootstrap_mean

FEW = 5  # documents of a label


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    text = (
        "take the vectors of a baseline from this model: a folder of hat export, or a checkpoint of hat_units, whose "
    )
    text += "data are in the folder bin beside that of the references"
    parser.add_argument("--encoder", metavar="MODEL", help=text)
    text = "take those vectors of --encoder that its training has kept in this file"
    parser.add_argument("--vectors", metavar="FILE", help=text)


def fitted_of(args: argparse.Namespace, identifiers: Sequence[str]) -> list[Fitted]:
    """Fits the baselines, if they are asked for; their predictions are in the order of the identifiers.

    ValueError for options without effect, or for files that are missing, or a pipe.
    """
    for name, other in (("encoder", "baselines"), ("vectors", "encoder")):
        if getattr(args, name) is not None and getattr(args, other) is None:
            raise ValueError(f"--{name} has no effect without --{other}: remove it, or add that")
    if args.baselines is None:
        return []
    (wanted,) = args.references
    if not Path(wanted).is_file():
        raise ValueError(f"--baselines read {wanted} more than once: name a file, not a pipe")
    splits = dict(zip(("train", "valid"), splits_beside(args.baselines, wanted), strict=True)) | {"test": wanted}
    if path := next((path for path in splits.values() if not Path(path).is_file()), None):
        raise ValueError(f"--baselines need documents to fit and to choose settings on: {path} is missing")
    kind, known = ("segments", OF_SEGMENTS) if has_segments(wanted) else ("classification", OF_DOCUMENTS)
    chosen = [each for each in known.values() if args.encoder or not each.needs_vectors]
    needs_vectors = any(each.needs_vectors for each in chosen)
    if args.encoder and not needs_vectors:
        raise ValueError("--encoder has no effect on labels of segments: remove it")
    records = {name: {each.id: each for each in read_records(path, kind)} for name, path in splits.items()}
    records["test"] = {name: records["test"][name] for name in identifiers}
    vectors = dict[str, list[np.ndarray]]()
    if needs_vectors:
        from hat_fairseq.units.unit_vectors import vectors_of_texts  # not above: it needs torch

        vectors = vectors_of_texts(args.encoder, wanted, records, args.vectors)
    documents = {
        name: [document_of(each, path, own) for each, own in zip_longest(records[name].values(), vectors.get(name, ()))]
        for name, path in splits.items()
    }
    return baselines(chosen, documents["train"], documents["valid"], documents["test"])


def has_segments(path: str) -> bool:
    """Returns whether the records of a file have a label for each segment."""
    with opened(Path(path)) as file:
        return any(row.get("labels") is not None for _, row in file.rows(keep_empty=True))


def document_of(record: Record, path: str, vectors: np.ndarray | None) -> LabelledDocument:
    """Returns what baselines read of a record; ValueError for one without labels."""
    assert isinstance(record, LabelledText | LabelledSegments)
    if record.gold_value is None:
        raise ValueError(f"{path}: {record.name} has no label, so no baseline can be fitted or scored")
    if isinstance(record, LabelledSegments):
        return LabelledDocument(record.segments, tuple(map(str, record.labels or ())), vectors)
    text = " ".join(" ".join(part) if isinstance(part, tuple) else str(part) for part in record.parts)
    return LabelledDocument((text,), (str(record.label),), vectors)


def differences(
    systems: Mapping[str, Sequence[Sequence[str | None]]], gold: Sequence[Sequence[str | None]], samples: int, seed: int
) -> dict[str, Interval]:
    """Returns the accuracy of each further system minus that of the first one, over the same resampled documents.

    A document counts by the share of its labels that are right.
    """
    shares = {
        name: np.array(
            [100 * np.mean([g == r for g, r in zip(own, right, strict=True)] or [True]) for own, right in pairs]
        )
        for name, predicted in systems.items()
        for pairs in [list(zip(predicted, gold, strict=True))]
    }
    first, *others = shares
    return {name: bootstrap_mean(shares[name] - shares[first], samples, seed) for name in others}


def warnings_of(
    name: str, predicted: Sequence[Sequence[str | None]], gold: Sequence[Sequence[str | None]]
) -> list[str]:
    """Says what a figure hides: one label for all, and labels with few documents."""
    guesses, wanted = (Counter(label for own in each for label in own) for each in (predicted, gold))
    notes = []
    if len(guesses) == 1 and len(wanted) > 1:
        (label,) = guesses
        notes.append(
            f"{name}: all predictions are {label!r}, so the model has learned nothing but the most frequent label: "
            "train it longer, or on more documents (docs/tutorial_labels.md#when-it-is-not-enough)"
        )
    return notes


def few(gold: Sequence[Sequence[str | None]]) -> list[str]:
    """Names the labels of fewer than `FEW` documents."""
    counts = Counter(label for own in gold for label in {*own})
    rare = [f"{label!r} ({number})" for label, number in counts.items() if number < FEW]
    return [f"labels with fewer than {FEW} documents, whose figures say little: {', '.join(sorted(rare))}"] * bool(rare)
