"""The linear path over words: a logistic regression over TF-IDF of terms, which is fitted before a training begins.

It is of whole documents, or of their units: then the terms of a unit and those of its neighbours count apart.

A term is a token, or two tokens that follow each other, so that `gall` and `##ery` are a term, and so are `not` and
`approved`. Tokens are what the model reads: the path needs no text, so it works in transformers too, and in every
language that the dictionary has; a bag of real words is no better (docs/tutorial_labels.md). Markers and unknown tokens
are left out. The weight of a term is (1 + log of its count) times its inverse document frequency,
1 + log((1 + D) / (1 + d)) for d of D training documents, and a document has length 1, as in scikit-learn.

Legend: B documents, T tokens, N units of the document with most, M terms, K classes, D training documents (or units).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

MOST = 50_000  # terms: those of most training documents
LEAST = 2  # training documents that a term is in
BITS = 31  # of the id of a token
FILLER = 2**63 - 1  # where there are fewer terms; greater than each
SPECIAL, BOS = 4, 0  # ids below it are <s>, <pad>, </s> and <unk>; <s> begins a unit
NEIGHBOURS = 1  # units on either side whose terms count as those of neighbours


def terms_of(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the different terms of (T,) ids, in order, and how often each occurs."""
    return terms_and_texts(tokens.long(), torch.zeros_like(tokens))[0].unique(return_counts=True)


def terms_and_texts(ids: Tensor, texts_of: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the terms of (T,) ids, and the number of the text of each; `texts_of`: those of the ids."""
    known = ids >= SPECIAL
    ids, texts_of = ids[known], texts_of[known]
    inside = texts_of[1:] == texts_of[:-1]
    pairs = ((ids[:-1] << BITS) | ids[1:])[inside]
    return torch.cat([ids | (1 << 2 * BITS), pairs]), torch.cat([texts_of, texts_of[1:][inside]])


class Words(nn.Module):
    """Logits of classes from terms.

    All tensors are buffers, because no gradient changes them: `fit` sets them. They are as large as for `MOST` terms,
    so that checkpoints of all trainings have the same shapes.

    Buffers: `terms`, (M,) in order; `rarity`, (M,) their inverse document frequencies; `weight`, (K, M); `bias`, (K,);
    `fitted`, the number of terms, 0 before `fit`.
    """

    terms: Tensor
    rarity: Tensor
    weight: Tensor
    bias: Tensor
    fitted: Tensor

    def __init__(self, num_classes: int, most: int = MOST) -> None:
        super().__init__()
        self.register_buffer("terms", torch.full((most,), FILLER))
        self.register_buffer("rarity", torch.zeros(most))
        self.register_buffer("weight", torch.zeros(num_classes, most))
        self.register_buffer("bias", torch.zeros(num_classes))
        self.register_buffer("fitted", torch.tensor(0))

    def reset_parameters(self) -> None:
        """Forgets all terms."""
        nn.init.constant_(self.terms, FILLER)
        for buffer in (self.rarity, self.weight, self.bias, self.fitted):
            nn.init.zeros_(buffer)

    @property
    def has_weights(self) -> bool:
        """Returns whether the regression is fitted; not if transformers has loaded the terms for other classes."""
        return bool(self.weight.any())

    @torch.no_grad()
    def set_terms(self, terms: Tensor, rarity: Tensor) -> None:
        """Sets the terms, in order, and their inverse document frequencies."""
        self.reset_parameters()
        self.terms[: len(terms)], self.rarity[: len(terms)] = terms, rarity.to(self.rarity)
        self.fitted.fill_(len(terms))

    @torch.no_grad()
    def set_weights(self, weight: Tensor, bias: Tensor) -> None:
        """Sets the (K, M) weights of the terms that there are, and the (K,) biases."""
        self.weight[:, : weight.size(1)], self.bias[:] = weight.to(self.weight), bias.to(self.bias)

    def features(self, texts: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the known terms of texts, (T,) ids each, with their weights, of which those of a text have length 1.

        Returns:
            Of each term and text: the number of the text, the place of the term, and the weight.
        """
        lengths = torch.tensor(list(map(len, texts)))
        ids = torch.cat(list(texts)).long()
        texts_of = torch.arange(len(lengths)).repeat_interleave(lengths).to(ids.device)
        terms, texts_of = terms_and_texts(ids, texts_of)
        places = torch.searchsorted(self.terms, terms).clamp(max=len(self.terms) - 1)
        known = self.terms[places] == terms
        both, counts = (texts_of[known] * len(self.terms) + places[known]).unique(return_counts=True)
        texts_of, places = both // len(self.terms), both % len(self.terms)
        values = (1 + counts.float().log()) * self.rarity[places].float()
        squares = values.new_zeros(len(lengths)).index_add(0, texts_of, values.square())
        return texts_of, places, values / squares.sqrt()[texts_of]

    def forward(self, tokens: Tensor) -> Tensor:
        """Maps (B, T) ids -> (B, K) logits, in fp32."""
        return self.logits(list(tokens))

    def logits(self, texts: Sequence[Tensor]) -> Tensor:
        """Computes the (B, K) logits of texts, (T,) ids each, in fp32."""
        texts_of, places, values = self.features(texts)
        logits = self.bias.float().repeat(len(texts), 1)
        return logits.index_add(0, texts_of, self.weight.float()[:, places].T * values[:, None])


def split_units(tokens: Tensor) -> list[Tensor]:
    """Divides (T,) ids into those of each unit."""
    return list(torch.tensor_split(tokens, tokens.eq(BOS).nonzero().squeeze(1).cpu())[1:])


def neighbours_of(units: list[Tensor]) -> list[Tensor]:
    """Returns for each unit the ids of its neighbours."""
    return [
        torch.cat([*units[max(0, n - NEIGHBOURS) : n], *units[n + 1 : n + 1 + NEIGHBOURS], units[n][:0]])
        for n in range(len(units))
    ]


class UnitWords(nn.Module):
    """Logits of the classes of units, from their own terms and from those of their neighbours.

    Parts: `own` and `near`, the bias of which is 0.
    """

    def __init__(self, num_classes: int, most: int = MOST) -> None:
        super().__init__()
        self.own, self.near = Words(num_classes, most), Words(num_classes, most)

    @property
    def has_weights(self) -> bool:
        """Returns whether the regression is fitted."""
        return self.own.has_weights or self.near.has_weights

    def forward(self, tokens: Tensor) -> Tensor:
        """Maps (B, T) ids, each document with a unit -> (B, N, K) logits, in fp32; 0 for units that are not there."""
        rows = [self.own.logits(units) + self.near.logits(neighbours_of(units)) for units in map(split_units, tokens)]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)
