"""What words and vectors say about a unit and a question: the features of a regression that finds evidence.

Words: BM25 (Robertson and Zaragoza 2009, equation 3.15), whose terms are tokens, and whose document frequencies are
those of the units of the document; a term may have a weight of its own, because questions share words such as `what`
and `discuss` that say nothing about where the answer is. Vectors: cosines. What stands around a unit counts by its
distance in tokens: a feature is smoothed with a Gaussian, is the greatest within a window, or is the cosine of the mean
vector of a window.

Legend: Q questions, N units, T tokens of all units, U terms of all questions, F features, E channels of a vector.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..modules.in_context import middles_of, nearby_means
from .rules import K1, ROWS, B

WORDS_WITHIN = (48, 128, 256, 512)  # tokens: standard deviations of the Gaussians over the scores of words
COSINES_WITHIN = (48, 128, 256)  # and over cosines
BEST_WITHIN = (128, 256)  # tokens on either side in which the greatest cosine is taken
MEANS_WITHIN = (64, 128, 256)  # tokens on either side whose states are averaged
RAW = 4.0  # scale of a value from 0 to 1 that is not standardised
NOISE = 1e-3  # is added to standard deviations: differences below it are noise


@dataclass(frozen=True)
class Terms:
    """The tokens of questions in a document.

    Attributes:
        ids: (U,) in order.
        asked: (Q, U) 1 for the terms of each question, else 0.
        rarity: (U,) inverse document frequencies, units of this document counting as documents.
        scores: (U, N) BM25 of each term and unit.
    """

    ids: Tensor
    asked: Tensor
    rarity: Tensor
    scores: Tensor


def bm25_terms(questions: Sequence[Tensor], tokens: Tensor, sizes: Tensor, dtype: torch.dtype = torch.float32) -> Terms:
    """Scores each token of the questions in each unit by BM25, in `dtype`.

    Args:
        questions: the ids of each.
        tokens: (T,) ids of all units.
        sizes: (N,) tokens of each unit.
    """
    ids, inverse = torch.cat([*questions]).unique(return_inverse=True)
    lengths = torch.tensor([len(question) for question in questions], device=tokens.device)
    asked = torch.zeros(len(questions), len(ids), dtype=dtype, device=tokens.device)
    asked[torch.arange(len(questions), device=tokens.device).repeat_interleave(lengths), inverse] = 1
    owners = torch.arange(len(sizes), device=tokens.device).repeat_interleave(sizes)
    places = torch.searchsorted(ids, tokens).clamp(max=max(0, len(ids) - 1))
    known = ids[places] == tokens if len(ids) else torch.zeros_like(tokens, dtype=torch.bool)
    counts = asked.new_zeros(len(ids), len(sizes))
    counts.index_put_((places[known], owners[known]), counts.new_ones(()), accumulate=True)
    frequency = (counts > 0).sum(dim=1).to(dtype)
    rarity = torch.log1p((len(sizes) - frequency + 0.5) / (frequency + 0.5))
    lengths_of_units = sizes.to(dtype)
    relative = lengths_of_units / lengths_of_units.mean().clamp(min=1)
    scores = rarity.unsqueeze(1) * counts * (K1 + 1) / (counts + K1 * (1 - B + B * relative))
    return Terms(ids, asked, rarity, scores)


def standardised(x: Tensor) -> Tensor:
    """Maps (Q, N) values to a mean of 0 and a standard deviation of 1 over the units."""
    deviation = (x.var(dim=1, keepdim=True, correction=0) + 1e-12).sqrt()
    return (x - x.mean(dim=1, keepdim=True)) / (deviation + NOISE)


def smoothed(x: Tensor, middles: Tensor, width: float) -> Tensor:
    """Averages (Q, N) values with a Gaussian over the distance of the (N,) middles of units; `width` in tokens."""
    parts = []
    for place in middles.split(ROWS):
        near = torch.exp(-0.5 * ((place.unsqueeze(1) - middles) / width).square()).to(x)
        parts.append(x @ near.T / near.sum(dim=1))
    return torch.cat(parts, dim=1)


def best_nearby(x: Tensor, middles: Tensor, width: float) -> Tensor:
    """Takes the greatest of (Q, N) values whose (N,) middles are at most `width` tokens away."""
    parts = []
    for place in middles.split(ROWS):
        far = (place.unsqueeze(1) - middles).abs() > width
        parts.append(x.unsqueeze(1).masked_fill(far, -math.inf).amax(dim=2))
    return torch.cat(parts, dim=1)


def cosines(questions: Tensor, means: Tensor) -> Tensor:
    """Computes the (Q, N) cosines of (Q, E) vectors of length 1 and (N, E) vectors of any length."""
    return questions @ F.normalize(means, dim=1).T


def features_of_words(terms: Terms, weights: Tensor, middles: Tensor) -> list[Tensor]:
    """Computes (Q, N) features of words: standardised, alone and smoothed; then shares of what a unit can reach.

    `weights`: (U,) of the terms, none of them negative.
    """
    asked = terms.asked * weights
    scores = asked @ terms.scores
    share = scores / ((asked @ terms.rarity).unsqueeze(1) * (K1 + 1) + 1e-6)
    near = [smoothed(scores, middles, width) for width in WORDS_WITHIN]
    return [*map(standardised, (scores, *near)), RAW * share, RAW * smoothed(share, middles, WORDS_WITHIN[0])]


def features_of_vectors(questions: Tensor, units: Tensor, contexts: Tensor, sizes: Tensor) -> list[Tensor]:
    """Computes (Q, N) features of vectors.

    Args:
        questions: (Q, E) of length 1.
        units: (N, E) of the units, each encoded alone.
        contexts: (N, E) means of the states of the tokens of each unit, in context.
        sizes: (N,) tokens of the units.
    """
    middles = middles_of(sizes, questions.dtype)
    alone, inside = cosines(questions, units), cosines(questions, contexts)
    near = [cosines(questions, nearby_means(contexts, sizes, width)) for width in MEANS_WITHIN]
    best = [best_nearby(alone, middles, width) for width in BEST_WITHIN]
    around = [smoothed(alone, middles, width) for width in COSINES_WITHIN]
    around += [smoothed(each, middles, width) for each, width in zip(best, BEST_WITHIN, strict=True)]
    raw = [RAW * each for each in (alone, inside, near[-1])]
    return [*map(standardised, (alone, inside, *near, *best, *around)), *raw]


NUMBER = 1 + len(WORDS_WITHIN) + 2 + 2 + len(MEANS_WITHIN) + 2 * len(BEST_WITHIN) + len(COSINES_WITHIN) + 3
