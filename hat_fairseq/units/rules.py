"""Rules without training that score the turns or sentences of a document for questions: baselines for evidence.

Words: BM25 (Robertson and Zaragoza 2009, equation 3.15), in which a unit counts as a document. Questions share words
such as `what` and `discuss` that say nothing about where the answer is, so a rule may weight each word of a question by
its squared inverse document frequency among other questions. Scores are z scores over the units of the document. Rules
of vectors are in `studies/vector_rules.py`.

Legend: Q questions, N units, V words of all questions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from hat_fairseq.data.language import words_of

K1, B = 1.2, 0.75  # of BM25
ROWS = 256  # units whose surroundings are computed together

Weights = Callable[[str], float]


def weights_of(questions: Iterable[str]) -> Weights:
    """Returns the weight of a word: its squared inverse document frequency among questions, the greatest in none."""
    words = [set(words_of(question)) for question in questions]
    frequencies = Counter(chain(*words))
    return lambda word: float(np.log((len(words) + 1) / (frequencies[word] + 0.5)) ** 2)


class WordScores:
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

    def bm25(self, weights: Weights | None) -> np.ndarray:
        """Returns the (Q, N) scores; `weights`: None to count all words of a question alike."""
        own = np.ones(len(self.words)) if weights is None else np.array(list(map(weights, self.words)))
        return np.asarray((self.asked * own) @ self.scores)


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


def as_probabilities(scores: np.ndarray) -> np.ndarray:
    """Maps scores to 0 to 1 in the same order, rounded as in predictions; far scores stay apart, as with no sigmoid."""
    return np.round(0.5 + 0.5 * scores / (1 + np.abs(scores)), 6)
