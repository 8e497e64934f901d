"""Figures of a split of examples, for the manifest and its table."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hat_fairseq.data.manifest import summary


@dataclass
class ExampleReport:
    """Like ``manifest.SplitReport``, for examples.

    Args:
        documents: how many examples there are.
        sentences: how many markers there are in all rows.
        source_lengths: tokens of each row, markers and separators included, fairseq's final ``</s>`` not.
        totals: ``source_words`` and ``source_tokens``, the latter before anything was cut; what choices share counts
            once.
        labels: how many examples, segments or words have each label.
        treatments: everything replaced, cut or dropped.
    """

    documents: int = 0
    sentences: int = 0
    source_lengths: list[int] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    treatments: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        rows = ("source_words", "source_tokens")
        return {
            "documents": self.documents,
            "lines": len(self.source_lengths),
            "sentences": self.sentences,
            "source_tokens": summary(self.source_lengths),
            "per_document": {row: round(self.totals[row] / max(1, self.documents), 1) for row in rows},
            "labels": dict(sorted(self.labels.items())),
            "treatments": dict(sorted((name, number) for name, number in self.treatments.items() if number)),
        }
