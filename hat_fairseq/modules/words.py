"""The linear path over words: a logistic regression over TF-IDF of terms, which is fitted before a training begins.

A term is a token, or two tokens that follow each other, so that `gall` and `##ery` are a term, and so are `not` and
`approved`. Tokens are what the model reads: the path needs no text, so it works in transformers too, and in every
language that the dictionary has; a bag of real words is no better (docs/tutorial_labels.md). Markers and unknown tokens
are left out. The weight of a term is (1 + log of its count) times its inverse document frequency,
1 + log((1 + D) / (1 + d)) for d of D training documents, and a document has length 1, as in scikit-learn.

Legend: B documents, T tokens, M terms, K classes, D training documents.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MOST = 50_000  # terms: those of most training documents
LEAST = 2  # training documents that a term is in
BITS = 31  # of the id of a token
FILLER = 2**63 - 1  # where there are fewer terms; greater than each
SPECIAL = 4  # ids below it are <s>, <pad>, </s> and <unk>


def terms_of(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the different terms of (T,) ids, in order, and how often each occurs."""
    ids = tokens[tokens >= SPECIAL].long()
    pairs = (ids[:-1] << BITS) | ids[1:]
    return torch.cat([ids | (1 << 2 * BITS), pairs]).unique(return_counts=True)


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

    def features(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the places of the known terms of (T,) ids, and their weights, of length 1 together."""
        own, counts = terms_of(tokens)
        places = torch.searchsorted(self.terms, own).clamp(max=len(self.terms) - 1)
        known = self.terms[places] == own
        places = places[known]
        values = (1 + counts[known].float().log()) * self.rarity[places].float()
        return places, F.normalize(values, dim=0)

    def forward(self, tokens: Tensor) -> Tensor:
        """Maps (B, T) ids -> (B, K) logits, in fp32."""
        weight, rows = self.weight.float(), list[Tensor]()
        for row in tokens:
            places, values = self.features(row)
            rows.append(weight[:, places] @ values + self.bias.float())
        return torch.stack(rows)
