"""`Gold`: the gold targets or labels of a split, and what has to hold for those of all splits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hat_fairseq.data.kind import Kind
from hat_fairseq.data.record import Record


@dataclass
class Gold:
    """The gold targets or labels of a split: how many records have them, and which labels and roles occur."""

    records: int = 0
    known: str | None = None  # the first record with a target or label; None if there is none
    unknown: str | None = None  # the first record without
    first_with: dict[str, str] = field(default_factory=dict)  # each label, and the first record that has it
    counts: Counter[str] = field(default_factory=Counter)  # how often each label occurs
    roles: set[str] = field(default_factory=set)

    def update(self, later: Mapping[str, Any]) -> None:
        """Add the records that follow, as JSON has them."""
        self.records += later["records"]
        self.known, self.unknown = self.known or later["known"], self.unknown or later["unknown"]
        for label, name in later["first_with"].items():
            self.first_with.setdefault(label, name)
        self.counts.update(later["counts"])
        self.roles.update(later["roles"])

    def add(self, record: Record, kind: Kind) -> None:
        """Count a record of this kind."""
        self.records += 1
        self.roles.update(record.roles or ())
        if kind.gold is None or getattr(record, kind.gold) is None:
            self.unknown = self.unknown or record.name
            return
        self.known = self.known or record.name
        labels = kind.gold_labels(record)
        self.counts.update(labels)
        for label in labels:
            self.first_with.setdefault(label, record.name)


def check_gold(split: str, gold: Gold, name: str | None) -> None:
    """Raises ValueError for a split without records, or in which only some records have targets or labels.

    `name`: of the field with them; None for kinds without.
    """
    if not gold.records:
        raise ValueError(f"{split}.jsonl: every document was dropped (--on-empty drop, --on-misaligned drop)")
    if gold.known and gold.unknown:
        raise ValueError(
            f"{split}: {gold.known} has {name}, {gold.unknown} has none; give all documents of a split {name}, or none"
        )


def check_tests(splits: Mapping[str, Gold], name: str | None) -> None:
    """Raises ValueError for tests with and without labels: fairseq numbers test, test1, ... of each on their own."""
    tests = {split: bool(gold.known) for split, gold in splits.items() if split.startswith("test")}
    labelled, others = ([split for split in tests if tests[split] is known] for known in (True, False))
    if labelled and others and name:
        raise ValueError(f"{labelled[0]} has {name} and {others[0]} has not: preprocess them from separate folders")


def role_labels(reader: str, gold: Gold) -> tuple[str, ...]:
    """Returns the roles of the training part, sorted; ValueError with the name of the reader if there are none."""
    if not gold.roles:
        raise ValueError(f"{reader}: --roles needs documents with roles, and none has any; use --no-roles")
    return tuple(sorted(gold.roles))


def class_labels(splits: Mapping[str, Gold], known: list[str] | None) -> list[str]:
    """The labels in the order of their classes: those of the training part, sorted, or without such labels `known`.

    Raises:
        ValueError: a split has a label that is not among them; with the record.
    """
    train = splits.get("train", Gold())
    where = "the training part" if train.known else "the data of --vocabulary"
    classes = sorted(train.first_with) if train.known else known or []
    for split, gold in splits.items():
        for label, name in gold.first_with.items():
            if label not in classes:
                raise ValueError(
                    f"{split}: {name} has the label {label!r}, which {where} does not have; "
                    f"it has {', '.join(map(repr, classes[:20])) or 'none'}{', ...' if len(classes) > 20 else ''}"
                )
    return classes
