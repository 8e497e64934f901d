"""Rules without training that score the turns or sentences of a document for questions: baselines for evidence.

Words: BM25 (Robertson and Zaragoza 2009, equation 3.15), in which a unit counts as a document. Questions share words
such as `what` and `discuss` that say nothing about where the answer is, so a rule may weight each word of a question by
its squared inverse document frequency among other questions. Vectors: cosines of a question and a unit, a chunk, a
passage, or all tokens near a unit. Sums are of z scores over the units of the document.

Sizes for vectors are tokens, those for words are words, so that the rules of words need no model.

Legend: Q questions, N units, V words of all questions, P passages.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any, Protocol

import numpy as np

from hat_fairseq.data.language import words_of

K1, B = 1.2, 0.75  # of BM25
CHUNK = 512  # tokens
PASSAGE = 256  # tokens; passages overlap by half
OWN = 1e-3  # share of a unit's own score in that of its chunk: it decides the order within the chunk
WORDS_WITHIN = (0, 24, 48, 128, 256, 512)  # words: standard deviations of the Gaussian over scores of words; 0: none
BEST_WITHIN = (128, 256)  # tokens on either side in which the greatest cosine is taken
MEANS_WITHIN = (64, 128, 192, 256, 384, 512)  # tokens on either side whose states are averaged
WEIGHTS = (0.5, 1.0, 2.0)  # of a summand, the first of which has 1
ROWS = 256  # units whose surroundings are computed together

Settings = Mapping[str, Any]


class QuestionWords:
    """Weights of the words of a question: the squared inverse document frequencies among other questions."""

    def __init__(self, questions: Iterable[str]) -> None:
        self.frequencies, self.number = Counter[str](), 0
        for question in questions:
            self.frequencies.update(set(words_of(question)))
            self.number += 1

    def weight(self, word: str) -> float:
        """Returns the weight of a word; a word of no question has the greatest one."""
        return float(np.log((self.number + 1) / (self.frequencies[word] + 0.5)) ** 2)


class Words:
    """BM25 of each word of the questions in each unit.

    Attributes:
        words: (V,) those of all questions.
        asked: (Q, V) 1 for the words of each question, else 0.
        scores: (V, N).
        middles: (N,) places of the middles of the units, in words.
    """

    def __init__(self, questions: Sequence[str], units: Sequence[str]) -> None:
        asked, said = ([Counter(words_of(text)) for text in texts] for texts in (questions, units))
        self.words = sorted(set().union(*asked))
        self.asked = np.array([[float(word in each) for word in self.words] for each in asked])
        counts = np.array([[each[word] for each in said] for word in self.words], float).reshape(-1, len(units))
        sizes = np.array([each.total() for each in said], float)
        self.middles = middles_of(sizes)
        frequency = (counts > 0).sum(axis=1, keepdims=True)
        rarity = np.log1p((len(units) - frequency + 0.5) / (frequency + 0.5))
        relative = sizes / max(1.0, sizes.mean())
        self.scores = rarity * counts * (K1 + 1) / (counts + K1 * (1 - B + B * relative))

    def bm25(self, weights: QuestionWords | None) -> np.ndarray:
        """Returns the (Q, N) scores; `weights`: None to count all words of a question alike."""
        own = np.ones(len(self.words)) if weights is None else np.array([weights.weight(word) for word in self.words])
        return np.asarray((self.asked * own) @ self.scores)


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


@dataclass
class Document:
    """What the rules know of a document with its questions.

    Attributes:
        number: of the document among all, on which random scores depend.
        weights: of the words of questions; None if no other questions are known.
    """

    number: int
    questions: Sequence[str]
    units: Sequence[str]
    weights: QuestionWords | None = None
    cosines: Cosines | None = None
    computed: dict[Any, np.ndarray] = field(default_factory=dict)

    @cached_property
    def words(self) -> Words:
        return Words(self.questions, self.units)

    def once(self, *key: Any, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """Returns what was computed before for a key."""
        if key not in self.computed:
            self.computed[key] = compute()
        return self.computed[key]

    @property
    def of_vectors(self) -> Cosines:
        assert self.cosines is not None, "a rule of vectors needs cosines"
        return self.cosines


def middles_of(sizes: np.ndarray) -> np.ndarray:
    """Returns the (N,) places of the middles of consecutive units of (N,) sizes."""
    return np.asarray(np.cumsum(sizes) - sizes / 2)


def standardised(scores: np.ndarray) -> np.ndarray:
    """Maps (Q, N) scores to z scores over the units; equal ones to 0."""
    deviation = scores.std(axis=1, keepdims=True)
    return np.asarray((scores - scores.mean(axis=1, keepdims=True)) / np.where(deviation > 1e-9, deviation, 1.0))


def smoothed(scores: np.ndarray, middles: np.ndarray, width: float) -> np.ndarray:
    """Averages (Q, N) scores with a Gaussian of the standard deviation `width` over the distance of the middles."""
    if not width:
        return scores
    parts = []
    for first in range(0, len(middles), ROWS):
        near = np.exp(-0.5 * ((middles[first : first + ROWS, None] - middles) / width) ** 2)
        parts.append(scores @ near.T / near.sum(axis=1))
    return np.concatenate(parts, axis=1)


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


def _random(document: Document) -> np.ndarray:
    generator = np.random.default_rng([0, document.number])
    return generator.random((len(document.questions), len(document.units)))


def _alone(document: Document) -> np.ndarray:
    return document.of_vectors.alone


def _best_of_chunk(document: Document) -> np.ndarray:
    own = document.of_vectors
    return best_of_chunk(own.alone, chunk_numbers(own.sizes)) + OWN * own.alone


def _chunk(document: Document) -> np.ndarray:
    return document.of_vectors.chunks + OWN * document.of_vectors.alone


def _late(document: Document, nearby: int) -> np.ndarray:
    return document.of_vectors.nearby[nearby]


def _bm25(document: Document, words: str, within: int) -> np.ndarray:
    def compute() -> np.ndarray:
        weights = document.weights if words == WEIGHTED else None
        return standardised(smoothed(document.words.bm25(weights), document.words.middles, within))

    return document.once("words", words, within, compute=compute)


def _passages(document: Document, passages: str) -> np.ndarray:
    own, best = document.of_vectors, passages == "best"
    return document.once("passages", passages, compute=lambda: from_passages(own.passages, own.sizes, best))


def _best(document: Document, best_within: int) -> np.ndarray:
    own = document.of_vectors
    nearby = partial(best_nearby, own.alone, middles_of(own.sizes), best_within)
    return document.once("best", best_within, compute=lambda: standardised(nearby()))


def _passages_bm25(document: Document, passages: str, words: str, within: int, words_weight: float) -> np.ndarray:
    own = document.once("z", passages, compute=lambda: standardised(_passages(document, passages)))
    return own + words_weight * _bm25(document, words, within)


def _late_bm25(document: Document, nearby: int, words: str, within: int, words_weight: float) -> np.ndarray:
    own = document.once("z", nearby, compute=lambda: standardised(document.of_vectors.nearby[nearby]))
    return own + words_weight * _bm25(document, words, within)


def _hybrid(document: Document, best_within: int, best_weight: float, **settings: Any) -> np.ndarray:
    return _passages_bm25(document, **settings) + best_weight * _best(document, best_within)


ALL, WEIGHTED = "all", "weighted"
OF_WORDS = {"words": (ALL, WEIGHTED), "within": WORDS_WITHIN}
OF_PASSAGES = {"passages": ("mean", "best")}
OF_NEARBY = {"nearby": MEANS_WITHIN}
WITH_WORDS = {**OF_WORDS, "words_weight": WEIGHTS}
OF_SUM = {**OF_PASSAGES, **WITH_WORDS}


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        title: for people.
        scores: of a document (Q, N), with a value for each of the settings.
        settings: the values to choose from.
    """

    title: str
    scores: Callable[..., np.ndarray]
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    needs_vectors: bool = True

    def choices(self, weighted: bool) -> Iterator[Settings]:
        """Yields all settings; without weights of words if none are known."""
        for values in product(*self.settings.values()):
            settings = dict(zip(self.settings, values, strict=True))
            if weighted or settings.get("words") != WEIGHTED:
                yield settings


RULES = {  # by the name of the option
    "random": Rule("random", _random, needs_vectors=False),
    "bm25": Rule("BM25", _bm25, OF_WORDS, needs_vectors=False),
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


def as_probabilities(scores: np.ndarray) -> np.ndarray:
    """Maps scores to 0 to 1 in the same order, rounded as in predictions; far scores stay apart, as with no sigmoid."""
    return np.round(0.5 + 0.5 * scores / (1 + np.abs(scores)), 6)
