"""The dataset of the labelled tasks: rows of tokens with targets, and samples of several rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils
from torch import Tensor

from ..data.ids import Chunk
from ..data.kind import IGNORED
from ..data.kinds import LabelledKind

Item = dict[str, Any]


class RowDataset(FairseqDataset):
    """A sample is a row, or all rows of a record, which are beside each other.

    Args:
        kind: of the data.
        rows: indexed (T,) token ids with `</s>`, with `sizes`.
        pad: id of padding.
        labels: indexed label ids of the rows, each ending in `</s>`; None for a split without labels.
        dictionary: fairseq's dictionary of the labels, where the data have one.
        split: for messages.
        chunks: the line of the ids table for each row where samples are records, else None.
    Raises:
        ValueError: the rows are not those of the ids table, or the labels of a record do not belong together.
    """

    def __init__(
        self,
        kind: LabelledKind,
        rows: Any,
        pad: int,
        labels: Any,
        dictionary: Any,
        split: str,
        chunks: Sequence[Chunk] | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.rows, self.pad = kind, rows, pad
        self.labels, self.dictionary, self.split = labels, dictionary, split
        symbols = () if dictionary is None else dictionary.symbols[dictionary.nspecial :]
        self.classes = {symbol: number for number, symbol in enumerate(symbols)}
        self.sizes = np.array(rows.sizes, dtype=np.int64)  # tokens of each sample, padding between its rows included
        self.first, self.counts = np.arange(len(rows)), np.ones(len(rows), dtype=np.int64)
        if chunks is not None:
            firsts = [chunk for chunk in chunks if chunk.number == 0]
            self.counts = np.array([chunk.count for chunk in firsts], dtype=np.int64)
            self.first = np.cumsum(self.counts) - self.counts
            beside = [(chunk.document_id, number) for chunk in firsts for number in range(chunk.count)]
            if len(rows) != len(chunks) or beside != [(chunk.document_id, chunk.number) for chunk in chunks]:
                raise ValueError(f"{split}: the rows are not those of {split}.ids: preprocess the data again")
            if len(firsts):
                self.sizes = np.maximum.reduceat(self.sizes, self.first) * self.counts
            for index in range(len(self)) if labels is not None else ():
                self.target(index, self._tokens(index))

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

    def _tokens(self, index: int) -> list[Tensor]:
        first = int(self.first[index])
        return [self.rows[row].long() for row in range(first, first + int(self.counts[index]))]

    def target(self, index: int, tokens: list[Tensor]) -> Any:
        """Returns the target of a sample; ValueError for labels that do not belong to its rows or to each other."""
        targets, where = [], ""
        try:
            for row, ids in enumerate(tokens, start=int(self.first[index])):
                where = f"label row {row + 1}"
                label = [self.dictionary[number] for number in self.labels[row][:-1].tolist()]
                targets.append(self.kind.target(label, ids.numpy(), self.classes))
            where = f"sample {index + 1}"
            return self.kind.sample_target(targets) if self.kind.joins_rows else targets[0]
        except ValueError as error:
            raise ValueError(f"{self.split}: {where}: {error}; preprocess the data again") from None

    def __getitem__(self, index: int) -> Item:
        tokens = self._tokens(index)
        target = None if self.labels is None else self.target(index, tokens)
        return {"id": int(index), "tokens": tokens, "target": target}

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


DATASETS: dict[str, type[RowDataset]] = {}  # of the kinds that have one of their own, by their name


def _collate_targets(targets: Sequence[Any]) -> Tensor:
    """Joins targets to (B,), or to (B, N) padded with `IGNORED`."""
    if not isinstance(targets[0], list):
        return torch.tensor(targets)
    return data_utils.collate_tokens([torch.tensor(target) for target in targets], IGNORED, left_pad=False)
