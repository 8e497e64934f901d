"""The datasets of the labelled tasks: rows of tokens with targets, and examples of several rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from ..data.rows import Chunk
from .cut_rows import CutRows
from .row_targets import RowTargets

Item = dict[str, Any]


class RowDataset(CutRows):
    """A sample is a row.

    Args:
        rows: indexed (T,) token ids, with `sizes`.
        targets: of the rows, or None for a split without labels.
        removed: by row, the tokens to remove; see `cut_rows`.
        pad: id of padding.
    """

    def __init__(self, rows: Any, targets: RowTargets | None, removed: Mapping[int, slice], pad: int) -> None:
        super().__init__(rows, removed)
        self.targets, self.pad = targets, pad

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def ordered_indices(self) -> np.ndarray:
        """By length, in random order among equals; fairseq sets numpy's seed by run and epoch."""
        order = np.random.permutation(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    def row(self, index: int) -> Item:
        """A row's tokens and target."""
        tokens = self.dataset[index].long()
        keep = self.kept(index, len(tokens))
        item: Item = {"tokens": tokens[torch.from_numpy(keep)]}
        if self.targets is not None:
            item["target"] = self.targets(index, tokens, keep)
        return item

    def __getitem__(self, index: int) -> Item:
        return {"id": int(index), **self.row(int(index))}

    def collater(self, samples: list[Item]) -> Item:
        """A batch; see `EncoderTask`."""
        if not samples:
            return {}
        target = None if self.targets is None else self.targets.collate([sample["target"] for sample in samples])
        return {**self._batch(samples, [sample["tokens"] for sample in samples]), "target": target}

    def _batch(self, samples: list[Item], rows: list[Tensor]) -> Item:
        lengths = torch.tensor([len(row) for row in rows])
        tokens = data_utils.collate_tokens(rows, self.pad, left_pad=False)
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": tokens, "src_lengths": lengths},
        }


class ExampleDataset(RowDataset):
    """A sample is an example of several rows.

    Args:
        chunks: the line of the ids table for each row, which is a part of its example.
        what: for messages: the split.
        rows, targets, removed, pad: of `RowDataset`.
    Raises:
        ValueError: the rows of an example are not beside each other.
    """

    def __init__(
        self,
        rows: Any,
        targets: RowTargets | None,
        removed: Mapping[int, slice],
        pad: int,
        *,
        chunks: Sequence[Chunk],
        what: str,
    ) -> None:
        super().__init__(rows, targets, removed, pad)
        firsts = [chunk for chunk in chunks if chunk.number == 0]
        self.counts = np.array([chunk.count for chunk in firsts], dtype=np.int64)
        self.first = np.cumsum(self.counts) - self.counts
        expected = [(chunk.document_id, number) for chunk in firsts for number in range(chunk.count)]
        if [(chunk.document_id, chunk.number) for chunk in chunks] != expected:
            raise ValueError(f"{what}: the rows of an example are not beside each other: preprocess the data again")
        longest = np.maximum.reduceat(self._sizes, self.first) if len(self.first) else self._sizes
        self._example_sizes = longest * self.counts
        self.labels: np.ndarray | None = None  # of each row
        if targets is not None:
            self.labels = np.array([int(targets.classes(index, 1)[0]) for index in range(len(targets))])
        self.answers: np.ndarray | None = None  # the target of each example; set by subclasses

    @property
    def sizes(self) -> np.ndarray:
        return self._example_sizes

    def __getitem__(self, index: int) -> Item:
        first = int(self.first[index])
        rows = [self.row(row)["tokens"] for row in range(first, first + int(self.counts[index]))]
        return {"id": int(index), "tokens": rows}

    def collater(self, samples: list[Item]) -> Item:
        if not samples:
            return {}
        batch = self._batch(samples, [row for sample in samples for row in sample["tokens"]])
        batch["target"] = None if self.answers is None else torch.from_numpy(self.answers[batch["id"].numpy()])
        return batch


class PairDataset(ExampleDataset):
    """An example is two rows with the same label."""

    def __init__(self, *rows: Any, chunks: Sequence[Chunk], what: str) -> None:
        super().__init__(*rows, chunks=chunks, what=what)
        if (self.counts != 2).any():
            wrong = int(np.flatnonzero(self.counts != 2)[0])
            raise ValueError(f"{what}: pair {wrong + 1} has {self.counts[wrong]} rows; preprocess the data again")
        if self.labels is not None:
            self.answers = self.labels[self.first]


class ChoiceDataset(ExampleDataset):
    """An example is all its choices, a row each.

    Args:
        right: class of the label that marks the right choice.
    Raises:
        ValueError: not exactly one choice of an example is right.
    """

    def __init__(self, *rows: Any, chunks: Sequence[Chunk], right: int, what: str) -> None:
        super().__init__(*rows, chunks=chunks, what=what)
        if self.labels is None:
            return
        found = self.labels == right
        ones = np.add.reduceat(found.astype(int), self.first)
        if (ones != 1).any():
            wrong = int(np.flatnonzero(ones != 1)[0])
            raise ValueError(f"{what}: example {wrong + 1} has {ones[wrong]} right choices; preprocess the data again")
        self.answers = np.flatnonzero(found) - self.first

    def collater(self, samples: list[Item]) -> Item:
        counts = torch.tensor([len(sample["tokens"]) for sample in samples])
        return {**super().collater(samples), "choices": counts} if samples else {}
