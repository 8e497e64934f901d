"""Rules without parameters that score the units of a document for questions, to compare models with.

Scores are from 0 to 1. A chunk is consecutive units with about `CHUNK` words, or tokens, together.

Legend: Q questions, N units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from hat_fairseq.data.language import words_of

CHUNK = 512  # words, or tokens
OWN = 1e-3  # share of a unit's own score in that of its chunk: it decides the order within the chunk


def chunk_numbers(sizes: Sequence[int]) -> np.ndarray:
    """Returns the number of each unit's chunk, from (N,) words or tokens: the one in which its last one is."""
    return np.maximum(np.cumsum(sizes) - 1, 0) // CHUNK


def first_chunk(scores: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Returns (Q, N) scores as a model has them that reads the first chunk alone: 0 for all other units."""
    return np.where(chunk_numbers(sizes) == 0, scores, 0.0)


def best_of_chunk(scores: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Returns for each unit the best of the (Q, N) scores in its chunk; within a chunk its own score decides."""
    numbers, best = chunk_numbers(sizes), np.zeros_like(scores)
    for number in np.unique(numbers):
        own = numbers == number
        best[:, own] = scores[:, own].max(axis=1, keepdims=True)
    return (best + OWN * scores) / (1 + OWN)


class Tfidf:
    """Cosines of texts as bags of words: 1 + log(count) times 1 + log((1 + texts) / (1 + texts with the word)).

    The weights are those of scikit-learn's `TfidfVectorizer(sublinear_tf=True)`; the words are those of all scripts. A
    word that is in none of the fitted texts has no weight.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        frequencies, number = Counter[str](), 0
        for number, text in enumerate(texts, start=1):  # noqa: B007
            frequencies.update(set(words_of(text)))
        self.weights = {word: 1 + np.log((1 + number) / (1 + count)) for word, count in frequencies.items()}

    def vector(self, text: str) -> Mapping[str, float]:
        """Returns the words of a text with their weights, the sum of whose squares is 1, or 0."""
        counts = Counter(word for word in words_of(text) if word in self.weights)
        weights = {word: (1 + np.log(count)) * self.weights[word] for word, count in counts.items()}
        length = np.sqrt(sum(weight**2 for weight in weights.values()))
        return {word: float(weight / length) for word, weight in weights.items()}

    def cosines(self, questions: Sequence[str], units: Sequence[str]) -> np.ndarray:
        """Computes the (Q, N) cosines of questions and units."""
        vectors = list(map(self.vector, units))
        rows = [
            [sum(weight * unit.get(word, 0.0) for word, weight in question.items()) for unit in vectors]
            for question in map(self.vector, questions)
        ]
        return np.minimum(np.array(rows, dtype=float), 1.0)


Scores = Callable[[Tfidf, np.random.Generator, Sequence[str], Sequence[str]], np.ndarray]


def _random(words: Tfidf, generator: np.random.Generator, questions: Sequence[str], units: Sequence[str]) -> np.ndarray:
    return generator.random((len(questions), len(units)))


def _tfidf(words: Tfidf, generator: np.random.Generator, questions: Sequence[str], units: Sequence[str]) -> np.ndarray:
    return words.cosines(questions, units)


def _first(words: Tfidf, generator: np.random.Generator, questions: Sequence[str], units: Sequence[str]) -> np.ndarray:
    return first_chunk(words.cosines(questions, units), _sizes(units))


def _chunk(words: Tfidf, generator: np.random.Generator, questions: Sequence[str], units: Sequence[str]) -> np.ndarray:
    return best_of_chunk(words.cosines(questions, units), _sizes(units))


def _sizes(units: Sequence[str]) -> list[int]:
    return [len(words_of(unit)) for unit in units]


BASELINES: dict[str, tuple[str, Scores]] = {  # by the name of the option, with a title
    "random": ("random", _random),
    "first": (f"TF-IDF, first {CHUNK} words", _first),
    "tfidf": ("TF-IDF", _tfidf),
    "chunk": (f"TF-IDF, best of its {CHUNK} words", _chunk),
}
