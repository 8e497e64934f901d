"""Rules without training that score turns or sentences by cosines: of a unit, a chunk, a passage, or what is nearby.

Sizes are tokens. Legend: Q questions, N units, P passages, E channels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, groupby
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hat_fairseq.inference.loading import Loaded
from hat_fairseq.inference.rows import encode_documents
from hat_fairseq.modules.in_context import Ids, nearby_means
from hat_fairseq.units import baselines as of_words
from hat_fairseq.units.baselines import OF_WORDS, Reference, Rule, bm25
from hat_fairseq.units.network import UnitsEncoder
from hat_fairseq.units.rules import middles_of, standardised
from hat_fairseq.units.unit_vectors import encoder_of

CHUNK = 512  # tokens
PASSAGE = 256  # tokens; passages overlap by half
OWN = 1e-3  # share of a unit's own score in that of its chunk: it decides the order within the chunk
BEST_WITHIN = (128, 256)  # tokens on either side in which the greatest cosine is taken
MEANS_WITHIN = (64, 128, 192, 256, 384, 512)  # tokens on either side whose states are averaged
WEIGHTS = (0.5, 1.0, 2.0)  # of a summand, the first of which has 1


class Cosines(Protocol):
    """Cosines of the questions of a document, which may be computed when a rule needs them."""

    @property
    def sizes(self) -> np.ndarray:
        """Returns the (N,) tokens of the units."""

    @property
    def alone(self) -> np.ndarray:
        """Returns (Q, N) with each unit, encoded by itself."""

    @property
    def chunks(self) -> np.ndarray:
        """Returns (Q, N) with the chunk of each unit; see `chunk_numbers`."""

    @property
    def nearby(self) -> Mapping[int, np.ndarray]:
        """Returns (Q, N) with the mean state of all tokens within `MEANS_WITHIN` of each unit, by this number."""

    @property
    def passages(self) -> np.ndarray:
        """Returns (Q, P) with each passage; see `passages_of`."""


def best_nearby(scores: np.ndarray, middles: np.ndarray, width: float) -> np.ndarray:
    """Takes the greatest of the (Q, N) scores of units whose middles are at most `width` away."""
    first, last = (np.searchsorted(middles, middles - width), np.searchsorted(middles, middles + width, side="right"))
    return np.stack([scores[:, a:b].max(axis=1) for a, b in zip(first, last, strict=True)], axis=1)


def chunk_numbers(sizes: np.ndarray) -> np.ndarray:
    """Returns the number of each unit's chunk of about `CHUNK` tokens: the one in which its last token is."""
    return np.asarray(np.maximum(np.cumsum(sizes) - 1, 0) // CHUNK)


def best_of_chunk(scores: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns for each unit the best of the (Q, N) scores in its chunk."""
    best = np.zeros_like(scores)
    for number in np.unique(numbers):
        own = numbers == number
        best[:, own] = scores[:, own].max(axis=1, keepdims=True)
    return best


def passages_of(tokens: int) -> list[tuple[int, int]]:
    """Returns first and last token, exclusive, of half-overlapping passages of a document with so many tokens."""
    count = 1 + max(0, -(-(tokens - PASSAGE) // (PASSAGE // 2)))
    return [(begin, min(tokens, begin + PASSAGE)) for begin in range(0, count * PASSAGE // 2, PASSAGE // 2)]


def from_passages(scores: np.ndarray, sizes: np.ndarray, best: bool) -> np.ndarray:
    """Returns for each unit the mean, or the best, of the (Q, P) scores of the passages that its middle is in."""
    passages, columns = passages_of(int(sizes.sum())), []
    for middle in middles_of(sizes):
        own = [number for number, (begin, end) in enumerate(passages) if begin <= middle <= end]
        columns.append(scores[:, own].max(axis=1) if best else scores[:, own].mean(axis=1))
    return np.stack(columns, axis=1)


def _alone(document: Reference) -> np.ndarray:
    return document.cosines.alone


def _best_of_chunk(document: Reference) -> np.ndarray:
    own = document.cosines
    return best_of_chunk(own.alone, chunk_numbers(own.sizes)) + OWN * own.alone


def _chunk(document: Reference) -> np.ndarray:
    return document.cosines.chunks + OWN * document.cosines.alone


def _late(document: Reference, nearby: int) -> np.ndarray:
    return document.cosines.nearby[nearby]


def _passages(document: Reference, passages: str) -> np.ndarray:
    own, best = document.cosines, passages == "best"
    return document.once("passages", passages, compute=lambda: from_passages(own.passages, own.sizes, best))


def _best(document: Reference, best_within: int) -> np.ndarray:
    own = document.cosines
    nearby = partial(best_nearby, own.alone, middles_of(own.sizes), best_within)
    return document.once("best", best_within, compute=lambda: standardised(nearby()))


def _passages_bm25(document: Reference, passages: str, words: str, within: int, words_weight: float) -> np.ndarray:
    own = document.once("z", passages, compute=lambda: standardised(_passages(document, passages)))
    return own + words_weight * bm25(document, words, within)


def _late_bm25(document: Reference, nearby: int, words: str, within: int, words_weight: float) -> np.ndarray:
    own = document.once("z", nearby, compute=lambda: standardised(document.cosines.nearby[nearby]))
    return own + words_weight * bm25(document, words, within)


def _hybrid(document: Reference, best_within: int, best_weight: float, **settings: Any) -> np.ndarray:
    return _passages_bm25(document, **settings) + best_weight * _best(document, best_within)


OF_PASSAGES = {"passages": ("mean", "best")}
OF_NEARBY = {"nearby": MEANS_WITHIN}
WITH_WORDS = {**OF_WORDS, "words_weight": WEIGHTS}
OF_SUM = {**OF_PASSAGES, **WITH_WORDS}


RULES = {
    **of_words.RULES,
    "alone": Rule("cosine of the unit", _alone),
    "best_of_chunk": Rule(f"cosine of the best unit of a chunk of {CHUNK} tokens", _best_of_chunk),
    "chunk": Rule(f"cosine of the chunk of {CHUNK} tokens", _chunk),
    "late": Rule("cosine of all tokens nearby (windowed late chunking)", _late, OF_NEARBY),
    "passages": Rule(f"cosine of passages of {PASSAGE} tokens", _passages, OF_PASSAGES),
    "late_bm25": Rule("all tokens nearby + BM25", _late_bm25, {**OF_NEARBY, **WITH_WORDS}),
    "passages_bm25": Rule("passages + BM25", _passages_bm25, OF_SUM),
    "hybrid": Rule(
        "passages + BM25 + best unit nearby", _hybrid, {**OF_SUM, "best_within": BEST_WITHIN, "best_weight": WEIGHTS}
    ),
}


def with_cosines(loaded: Loaded, references: Iterable[Reference]) -> list[Reference]:
    """Adds the cosines of each document; ValueError for one whose units the model does not read all."""
    encoder = encoder_of(loaded)
    return [replace(each, cosines=UnitCosines(encoder, *_tokens(loaded, encoder, each))) for each in references]


def _tokens(loaded: Loaded, encoder: UnitsEncoder, reference: Reference) -> tuple[list[Ids], list[Ids]]:
    """Returns the ids of each question and of each unit."""
    record = replace(reference.record.without_gold(), turns=None, text=None, sentences=tuple(reference.texts))
    [[encoded]] = encode_documents([record], loaded)
    questions, units = encoder.parts(encoded.tokens.tolist())
    if len(units) != len(reference.units):
        raise ValueError(
            f"{reference.record.name}: {loaded.paths[0]} reads {len(units)} of its {len(reference.units)} turns or "
            "sentences, because its data are truncated: take another encoder, such as meeting"
        )
    return questions, units


class UnitCosines:
    """Cosines of the questions of a document; each kind is computed when it is needed.

    Args:
        questions, units: ids of each.
    """

    def __init__(self, encoder: UnitsEncoder, questions: list[Ids], units: list[Ids]) -> None:
        self.encoder, self.questions, self.units = encoder, questions, units
        self.sizes = np.array(list(map(len, units)))

    @cached_property
    def asked(self) -> Tensor:
        return self.vectors(self.questions)

    @cached_property
    def alone(self) -> np.ndarray:
        return self.cosines(self.vectors(self.units))

    @cached_property
    def chunks(self) -> np.ndarray:
        numbers = chunk_numbers(self.sizes).tolist()
        chunks = [list(chain(*own)) for own in self.units_of_chunks(numbers)]
        return self.cosines(self.vectors(chunks))[:, np.unique(numbers, return_inverse=True)[1]]

    @cached_property
    @torch.no_grad()
    def nearby(self) -> dict[int, np.ndarray]:
        (means,) = self.encoder.encode_in_context([self.units])
        sizes = torch.from_numpy(self.sizes).to(means.device)
        return {width: self.cosines(nearby_means(means, sizes, width)) for width in MEANS_WITHIN}

    @cached_property
    def passages(self) -> np.ndarray:
        tokens = list(chain(*self.units))
        return self.cosines(self.vectors([tokens[begin:end] for begin, end in passages_of(len(tokens))]))

    def units_of_chunks(self, numbers: Sequence[int]) -> Iterator[list[Ids]]:
        """Yields the units of each chunk."""
        for _, own in groupby(zip(numbers, self.units, strict=True), key=lambda pair: pair[0]):
            yield [unit for _, unit in own]

    @torch.no_grad()
    def vectors(self, texts: Sequence[Ids]) -> Tensor:
        """Encodes texts, each by itself: (number, E)."""
        return torch.cat(list(self.encoder.encode([[text] for text in texts])))

    def cosines(self, others: Tensor) -> np.ndarray:
        """Computes the (Q, number) cosines of the questions and other vectors."""
        cosines: Any = F.normalize(self.asked, dim=1) @ F.normalize(others, dim=1).T
        return np.asarray(cosines.double().cpu().numpy())
