"""A form of answer that the package does not have: the set of keyphrases of a text. Also a --user-dir for fairseq.

Everything is in this file: the record, its rows and labels (each word begins a keyphrase, goes on with it, or is none),
the predictions, and the score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import hat_fairseq  # registers the plugin first  # noqa: F401
from hat_fairseq.data.kind import Prediction, register_kind
from hat_fairseq.data.kinds import LabelledWords
from hat_fairseq.data.kinds.labels import WordKind
from hat_fairseq.data.record import Record, Texts
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Divider, Prepared
from hat_fairseq.tasks.encoder_task import register_tasks

BEGIN, INSIDE, NONE = CLASSES = ("begin", "inside", "none")


@dataclass(frozen=True)
class KeyphraseText(Record, reads=("text",), gold="keyphrases"):
    text: str
    keyphrases: Texts | None = None

    def in_words(self) -> LabelledWords:
        """The words with their classes."""
        words = self.text.split()
        labels = [NONE] * len(words)
        for phrase in map(str.split, self.keyphrases or ()):
            for start in range(len(words) - len(phrase) + 1):
                if words[start : start + len(phrase)] == phrase:
                    labels[start : start + len(phrase)] = [BEGIN, *[INSIDE] * (len(phrase) - 1)]
        return LabelledWords(self.id, tuple(words), labels=None if self.keyphrases is None else tuple(labels))


@dataclass
class KeyphrasePrediction(Prediction):
    keyphrases: list[str]


class Keyphrases(WordKind):
    name, task = "keyphrases", "keyphrase_extraction"
    record = KeyphraseText
    classes = CLASSES
    element = None

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        return super().divide(divider, record.in_words())

    def encode(self, encoder: RowEncoder, prepared: Any) -> list[Row]:
        return super().encode(encoder, Prepared(prepared.record.in_words(), prepared.texts))

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return record.keyphrases

    def predict(
        self, record: Any, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> KeyphrasePrediction:
        phrases: list[list[str]] = []
        words = record.in_words()
        predicted = super().predict(words, rows, outputs, labels).labels
        for word, label in zip(words.words, predicted, strict=True):
            if label == BEGIN:
                phrases.append([word])
            elif label == INSIDE and phrases:
                phrases[-1].append(word)
        return KeyphrasePrediction(record.id, sorted({" ".join(phrase) for phrase in phrases}))


def f1(pairs: Iterable[tuple[set[str], set[str]]]) -> float:
    """F1 of predicted sets of keyphrases, summed over texts; pairs of prediction and reference."""
    pairs = list(pairs)
    right = sum(len(predicted & gold) for predicted, gold in pairs)
    return 2 * right / sum(len(predicted) + len(gold) for predicted, gold in pairs)


register_kind(Keyphrases())
register_tasks()
