"""The samples of each document, and documents joined from samples in any order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..data.ids import read_ids


@dataclass(frozen=True)
class DocumentTable:
    """The samples of each document, and the document of each sample.

    Args:
        ids: of the documents.
        samples: of each document, in the order of its chunks.
        document_of: (samples,) the number of each sample's document.
    """

    ids: list[str]
    samples: list[list[int]]
    document_of: list[int]

    @classmethod
    def load(cls, path: Path, num_samples: int) -> DocumentTable:
        """Read the ids file that `hat preprocess` writes beside the binary data.

        Raises:
            ValueError: it is missing, cannot be read, or is not about `num_samples` samples.
        """
        if not path.is_file():
            raise ValueError(f"{path} is missing: --eval-doc-bleu needs it; preprocess the documents again")
        chunks = read_ids(path)
        if len(chunks) != num_samples:
            raise ValueError(f"{path} has {len(chunks)} lines for {num_samples} samples: another subset?")
        numbers: dict[str, int] = {}
        samples: list[list[int]] = []
        document_of = []
        for sample, chunk in enumerate(chunks):
            number = numbers.setdefault(chunk.document_id, len(numbers))
            if number == len(samples):
                samples.append([-1] * chunk.count)
            samples[number][chunk.number] = sample
            document_of.append(number)
        return cls(list(numbers), samples, document_of)


@dataclass(frozen=True)
class TextPair:
    """A hypothesis and its reference, of a sample or of a document."""

    hypothesis: str
    reference: str


class DocumentCollector:
    """Joins the texts of samples into documents. Repeated samples are ignored."""

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._texts: dict[int, TextPair] = {}
        self._missing = [len(samples) for samples in table.samples]
        self._seen: set[int] = set()

    def add(self, sample: int, texts: TextPair) -> TextPair | None:
        """The texts of the whole document if `sample` was the last one missing, chunks joined by spaces; else None."""
        if sample in self._seen:
            return None
        self._seen.add(sample)
        self._texts[sample] = texts
        number = self._table.document_of[sample]
        self._missing[number] -= 1
        if self._missing[number]:
            return None
        chunks = [self._texts.pop(sample) for sample in self._table.samples[number]]
        return TextPair(" ".join(c.hypothesis for c in chunks), " ".join(c.reference for c in chunks))

    def incomplete(self) -> list[str]:
        """Ids of the documents with missing samples."""
        return [id_ for id_, missing in zip(self._table.ids, self._missing, strict=True) if missing]
