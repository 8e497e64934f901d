"""The datasets of the labelled tasks: rows of tokens with targets, and samples of several rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

from ..data.kind import IGNORED
from ..data.kinds import LabelledKind
from ..data.rows import Chunk

Item = dict[str, Any]


class RowTargets:
    """The target of each row, made of its line in the label stream.

    Args:
        labels: indexed label ids, each row ending in `</s>`.
        dictionary: of the labels.
    """

    def __init__(self, kind: LabelledKind, labels: Any, dictionary: Dictionary) -> None:
        self.kind, self.labels, self.dictionary = kind, labels, dictionary
        self.classes = {symbol: number for number, symbol in enumerate(dictionary.symbols[dictionary.nspecial :])}

    def __call__(self, index: int, tokens: Tensor) -> Any:
        """`LabelledKind.target` of a row; ValueError if the label does not belong to its (T,) token ids."""
        label = [self.dictionary[number] for number in self.labels[index][:-1].tolist()]
        try:
            return self.kind.target(label, tokens.numpy(), self.classes)
        except ValueError as error:
            raise ValueError(f"label row {index + 1}: {error}; preprocess the data again") from None


class RowDataset(FairseqDataset):
    """A sample is a row.

    Args:
        rows: indexed (T,) token ids with `</s>`, with `sizes`.
        targets: of the rows, or None for a split without labels.
        pad: id of padding.
    """

    def __init__(self, rows: Any, targets: RowTargets | None, pad: int) -> None:
        super().__init__()
        self.rows, self.targets, self.pad = rows, targets, pad
        self.sizes = np.array(rows.sizes, dtype=np.int64)  # tokens of each sample, padding between its rows included

    def __len__(self) -> int:
        return len(self.sizes)

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def ordered_indices(self) -> np.ndarray:
        """Sorts by length, in random order among equals; fairseq sets numpy's seed by run and epoch."""
        order = np.random.permutation(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    def __getitem__(self, index: int) -> Item:
        tokens = self.rows[index].long()
        target = None if self.targets is None else self.targets(int(index), tokens)
        return {"id": int(index), "tokens": [tokens], "target": target}

    def collater(self, samples: list[Item]) -> Item:
        """Makes a batch; see `encoder_task`."""
        if not samples:
            return {}
        rows = [row for sample in samples for row in sample["tokens"]]
        lengths = torch.tensor([len(row) for row in rows])
        targets = [sample["target"] for sample in samples]
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "num_rows": torch.tensor([len(sample["tokens"]) for sample in samples]),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(rows, self.pad, left_pad=False),
                "src_lengths": lengths,
            },
            "target": None if targets[0] is None else _collate_targets(targets),
        }


class SampleDataset(RowDataset):
    """A sample is all rows of a record, which are beside each other.

    Args:
        chunks: the line of the ids table for each row.
        split: for messages.
    Raises:
        ValueError: the rows are not those of the ids table, or the targets of a record do not belong together.
    """

    def __init__(self, rows: Any, targets: RowTargets | None, pad: int, chunks: Sequence[Chunk], split: str) -> None:
        super().__init__(rows, targets, pad)
        firsts = [chunk for chunk in chunks if chunk.number == 0]
        self.counts = np.array([chunk.count for chunk in firsts], dtype=np.int64)
        self.first = np.cumsum(self.counts) - self.counts
        beside = [(chunk.document_id, number) for chunk in firsts for number in range(chunk.count)]
        if len(rows) != len(chunks) or beside != [(chunk.document_id, chunk.number) for chunk in chunks]:
            raise ValueError(f"{split}: the rows are not those of {split}.ids: preprocess the data again")
        if len(firsts):
            self.sizes = np.maximum.reduceat(self.sizes, self.first) * self.counts
        self.sample_targets = None if targets is None else [self._target(targets, n, split) for n in range(len(self))]

    def _rows(self, index: int) -> range:
        return range(int(self.first[index]), int(self.first[index] + self.counts[index]))

    def _target(self, targets: RowTargets, index: int, split: str) -> Any:
        try:
            return targets.kind.sample_target([targets(row, self.rows[row]) for row in self._rows(index)])
        except ValueError as error:
            raise ValueError(f"{split}: sample {index + 1}: {error}; preprocess the data again") from None

    def __getitem__(self, index: int) -> Item:
        target = None if self.sample_targets is None else self.sample_targets[index]
        return {"id": int(index), "tokens": [self.rows[row].long() for row in self._rows(index)], "target": target}


def _collate_targets(targets: Sequence[Any]) -> Tensor:
    """Joins targets to (B,), or to (B, N) padded with `IGNORED`."""
    if not isinstance(targets[0], list):
        return torch.tensor(targets)
    return data_utils.collate_tokens([torch.tensor(target) for target in targets], IGNORED, left_pad=False)
