"""The heads of the recipes `labels` and `sentence_labels`, without words, trained on vectors that are computed once.

Legend: B documents, N units of the document with most, K classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hat_fairseq.units.heads import DocumentHead, UnitHead
from hat_fairseq.units.layers import NONE, UnitSizes

LR, DECAY, DROPOUT = 1e-3, 0.05, 0.15  # of configs/labels.yaml


@dataclass(frozen=True)
class HeadRecipe:
    """What a recipe says of its head: its layers over units, epochs, and documents of a batch."""

    head: Any
    layout: str
    epochs: int
    batch: int


LABELS = HeadRecipe(DocumentHead, NONE, 15, 8)
SENTENCE_LABELS = HeadRecipe(UnitHead, "N|D", 30, 4)


def trained(recipe: HeadRecipe, vectors: Sequence[Tensor], gold: Sequence[Tensor], classes: int, seed: int) -> Any:
    """Trains a head; `gold`: the class of each document as (1,), or the (N,) of its units, of which the first count."""
    torch.manual_seed(seed)
    head = recipe.head(vectors[0].size(1), classes, UnitSizes(recipe.layout, dropout=DROPOUT), words=False)
    optimizer = torch.optim.AdamW(head.parameters(), LR, weight_decay=DECAY)
    for _ in range(recipe.epochs):
        for places in torch.randperm(len(vectors)).split(recipe.batch):
            loss = loss_of(head, *([each[place] for place in places.tolist()] for each in (vectors, gold)))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
    return head.eval()


def loss_of(head: Any, vectors: Sequence[Tensor], gold: Sequence[Tensor]) -> Tensor:
    logits = head.network(*padded(vectors))
    read = [own[: len(each)] for own, each in zip(gold, vectors, strict=True)]
    wanted = nn.utils.rnn.pad_sequence(read, batch_first=True, padding_value=-100)
    return F.cross_entropy(logits.movedim(-1, 1), wanted.view(logits.shape[:-1]))


def padded(vectors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Returns (B, N, C) vectors and the (B, N) mask of padding."""
    lengths = torch.tensor(list(map(len, vectors)))
    together = nn.utils.rnn.pad_sequence(list(vectors), batch_first=True)
    return together, torch.arange(together.size(1)) >= lengths[:, None]


@torch.no_grad()
def logits_of(head: Any, vectors: Tensor) -> Tensor:
    """Returns the (1, K) logits of a document, or the (N, K) of its units."""
    return head.network(*padded([vectors])).flatten(0, -2)
