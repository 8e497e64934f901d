"""The dataset of evidence: each document also has questions of other documents, which it does not answer.

Without them a model could not learn to say that nothing answers a question.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.dictionary import BOS, EOS
from ..data.kind import IGNORED
from ..tasks.row_dataset import DATASETS, RowDataset
from .evidence import EVIDENCE, OF_DOCUMENT, count_questions_and_units

OTHERS = 2  # questions of other documents
TRIES = 8  # to find a row of another document


class EvidenceDataset(RowDataset):
    """Rows of questions and units, with `OTHERS` questions of other documents after those of the row.

    They are others in each epoch, and depend on nothing but the epoch and the row. `sizes` are those of rows without
    them, so a batch of --max-tokens may have a few tokens more. Their targets are that the document
    does not answer them; of its units nothing is said.
    """

    epoch = 1

    def set_epoch(self, epoch: int) -> None:
        """Chooses other questions, as fairseq's hook."""
        self.epoch = epoch if self.split.startswith("train") else 1

    def questions(self) -> Iterator[Tensor]:
        """Yields the ids of each question of all rows, without its marker."""
        for index in range(len(self.rows)):
            row = self.rows[index].long()
            yield from (each[1:] for each in _questions(row[: _end(row)]))

    def _tokens(self, index: int) -> list[Tensor]:
        (row,) = super()._tokens(index)
        if self.labels is None:
            return [row]
        end = _end(row)
        return [torch.cat([row[:end], *self.others(index, row[end:]), row[end:]])]

    def others(self, index: int, document: Tensor) -> list[Tensor]:
        """Returns questions of other documents, each with its marker, as the row begins; fewer if there are none.

        No question is drawn twice, or is one of the row, which may be asked of several documents.

        Args:
            document: the tokens of the row after its questions; several rows may have the same document.
        """
        generator, questions = np.random.default_rng([self.epoch, index]), list[Tensor]()
        own = self.rows[index].long()
        asked = {tuple(each.tolist()) for each in _questions(own[: _end(own)])}
        for _ in range(TRIES):
            row = self.rows[int(generator.integers(len(self.rows)))].long()
            end = _end(row)
            if len(questions) < OTHERS and end and not torch.equal(row[end:], document):
                known = _questions(row[:end])
                drawn = known[int(generator.integers(len(known)))]
                if (ids := tuple(drawn.tolist())) not in asked:
                    asked.add(ids)
                    questions.append(drawn)
        return questions

    def target(self, index: int, tokens: list[Tensor]) -> Any:
        (row,) = tokens
        own, (questions, units) = self.rows[index].long(), count_questions_and_units(row)
        others = questions - count_questions_and_units(own)[0]
        unknown = [OF_DOCUMENT, OF_DOCUMENT, *[IGNORED] * (2 * units)]
        return [*super().target(index, [own]), *unknown * others]


DATASETS[EVIDENCE] = EvidenceDataset


def _questions(tokens: Tensor) -> Sequence[Tensor]:
    """Returns the tokens of each question, which begin with its marker."""
    return tokens.tensor_split(tokens.eq(BOS).nonzero().flatten()[1:])


def _end(row: Tensor) -> int:
    """Returns the number of tokens before the first `</s>` of a row."""
    return int(row.eq(EOS).nonzero()[0])
