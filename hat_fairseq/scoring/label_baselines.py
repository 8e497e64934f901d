"""`hat score classification --baselines`: baselines beside the systems, and warnings about what people stumble on."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path

import numpy as np

from hat_fairseq.data.formats import opened
from hat_fairseq.data.kinds.labels import LabelledSegments, LabelledText
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.scoring.baselines import OF_DOCUMENTS, OF_SEGMENTS, Fitted, LabelledDocument, baselines
from hat_fairseq.scoring.report import Interval, bootstrap_mean

VECTORS = "hat_fairseq.units.unit_vectors"  # which needs torch, and imports this part of the package
FEW = 5  # documents of a label
NAMES = {**OF_DOCUMENTS, **OF_SEGMENTS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baselines",
        nargs="*",
        choices=NAMES,
        metavar="NAME",
        help="also fit baselines to --train and score them (default: all that can be computed): of documents "
        + ", ".join(OF_DOCUMENTS)
        + "; of segments "
        + ", ".join(OF_SEGMENTS),
    )
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="fit the baselines to these records (default: train.jsonl beside the references)",
    )
    parser.add_argument(
        "--valid",
        metavar="FILE",
        help="choose the settings of the baselines on these records (default: valid.jsonl beside the references)",
    )
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        help="take the vectors of the baseline `vectors` from this model: a folder of hat export, or a checkpoint of "
        "hat_units, whose data are in the folder bin beside that of the references",
    )
    parser.add_argument(
        "--vectors", metavar="FILE", help="take those vectors of --encoder that its training has kept in this file"
    )


def fitted_of(args: argparse.Namespace, identifiers: Sequence[str]) -> list[Fitted]:
    """Fits the baselines that are asked for; their predictions are in the order of the identifiers.

    ValueError for options without effect, or for files that are missing, or a pipe.
    """
    if args.baselines is None:
        if name := next((each for each in ("train", "valid", "encoder", "vectors") if getattr(args, each)), None):
            raise ValueError(f"--{name} has no effect without --baselines: remove it")
        return []
    (wanted,) = args.references
    if not Path(wanted).is_file():
        raise ValueError(f"--baselines read {wanted} more than once: name a file, not a pipe")
    splits = {name: split_of(args, name, wanted) for name in ("train", "valid")} | {"test": wanted}
    kind, known = ("segments", OF_SEGMENTS) if has_segments(wanted) else ("classification", OF_DOCUMENTS)
    chosen = [known[name] for name in names_of(args, known)]
    records = {name: {each.id: each for each in read_records(path, kind)} for name, path in splits.items()}
    records["test"] = {name: records["test"][name] for name in identifiers}
    vectors = dict[str, list[np.ndarray]]()
    if any(each.needs_vectors for each in chosen):
        vectors = import_module(VECTORS).vectors_of_texts(args.encoder, wanted, records, args.vectors)
    documents = {
        name: [document_of(each, path, own) for each, own in zip_longest(records[name].values(), vectors.get(name, ()))]
        for name, path in splits.items()
    }
    return baselines(chosen, documents["train"], documents["valid"], documents["test"])


def split_of(args: argparse.Namespace, name: str, references: str) -> str:
    """Returns the file of training or validation documents; ValueError if nobody names it and none is there."""
    path = getattr(args, name) or str(Path(references).with_name(f"{name}.jsonl"))
    if getattr(args, name) is None and not Path(path).is_file():
        raise ValueError(f"--baselines need documents to fit: {path} is missing, so give --{name} FILE")
    return path


def has_segments(path: str) -> bool:
    """Returns whether the records of a file have a label for each segment."""
    with opened(Path(path)) as file:
        return any(row.get("labels") is not None for _, row in file.rows(keep_empty=True))


def names_of(args: argparse.Namespace, known: Mapping[str, object]) -> list[str]:
    """Returns the names of the baselines to compute; ValueError for one of other documents, or without an encoder."""
    if args.vectors and not args.encoder:
        raise ValueError("--vectors has no effect without --encoder: add it, or remove --vectors")
    if not args.baselines:
        return [name for name in known if args.encoder or not NAMES[name].needs_vectors]
    names = list(dict.fromkeys(args.baselines))
    if other := next((name for name in names if name not in known), None):
        raise ValueError(f"--baselines {other} is not for these references: choose from {', '.join(known)}")
    needing = [name for name in names if NAMES[name].needs_vectors]
    if needing and not args.encoder:
        raise ValueError(f"--baselines {needing[0]} needs vectors: give --encoder, a model of hat_units")
    if args.encoder and not needing:
        raise ValueError("--encoder has no effect without a baseline of vectors: remove it")
    return names


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
        name: np.array([100 * np.mean([g == r for g, r in zip(own, right, strict=True)]) for own, right in pairs])
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
