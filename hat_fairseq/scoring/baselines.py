"""Baselines: what a model must be better than. Here are those for labels of documents and of segments.

Each is fitted to training documents, its settings are chosen on validation documents, by accuracy, and it predicts the
references. scikit-learn is imported when a baseline is fitted.

Legend: D documents, N segments, C channels of a vector.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hat_fairseq.data.language import words_of
from hat_fairseq.threads import one_thread

FIRST = 380  # words, about 512 tokens of English
STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # scikit-learn's C, the inverse of the L2 penalty
MOST = 50_000  # terms
ITERATIONS = 1_000
PLACES = 10  # parts of a document
NEIGHBOURS = 1  # segments on either side whose words count as those of neighbours


class Fitted(NamedTuple):
    """A baseline on the references: a prediction for each, and the settings that were chosen, by name."""

    title: str
    predictions: list[Any]
    chosen: dict[str, Any]


@dataclass(frozen=True)
class Baseline(ABC):
    """A baseline by its title."""

    title: str

    @abstractmethod
    def fit(self, train: Any, valid: Any) -> tuple[Callable[[Any], list[Any]], dict[str, Any]]:
        """Returns what predicts documents, and the settings that were chosen on `valid`."""


def baselines(chosen: Sequence[Baseline], train: Any, valid: Any, test: Any) -> list[Fitted]:
    """Fits baselines to `train` and `valid`, and predicts `test`."""
    fitted = [(each.title, *each.fit(train, valid)) for each in chosen]
    return [Fitted(title, predict(test), settings) for title, predict, settings in fitted]


class LabelledDocument(NamedTuple):
    """The texts of a document, one or one for each segment, with as many labels.

    `vectors`: (N, C) of its sentences; None where no encoder is known.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    vectors: np.ndarray | None = None


Documents = Sequence[LabelledDocument]
Features = Callable[[Documents], Any]


@dataclass(frozen=True)
class Regression(Baseline):
    """Predicts labels by a logistic regression.

    Attributes:
        features: maps training documents -> a function from documents to features of all their labels; None: the
            label that most training documents have.
        needs_vectors: whether documents need vectors.
    """

    features: Callable[[Documents], Features] | None
    needs_vectors: bool = False

    def fit(self, train: Documents, valid: Documents) -> tuple[Callable[[Documents], list[Any]], dict[str, Any]]:
        """Chooses the strength of the L2 penalty."""
        gold, wanted = (np.array([label for each in own for label in each.labels]) for own in (train, valid))
        most = Counter(gold.tolist()).most_common(1)[0][0]
        if self.features is None or len(np.unique(gold)) < 2:
            return lambda test: [(most,) * len(each.labels) for each in test], {"C": None}
        from sklearn.linear_model import LogisticRegression

        features = self.features(train)
        of_train, of_valid = features(train), features(valid)
        with one_thread():
            models = [(C, LogisticRegression(C=C, max_iter=ITERATIONS).fit(of_train, gold)) for C in STRENGTHS]
        strength, best = max(models, key=lambda pair: float(np.mean(pair[1].predict(of_valid) == wanted)))

        def predict(test: Documents) -> list[Any]:
            predicted = iter(best.predict(features(test)).tolist())
            return [tuple(next(predicted) for _ in each.labels) for each in test]

        return predict, {"C": strength}


def _of_words(texts_of: Callable[[LabelledDocument], Sequence[str]]) -> Any:
    """TF-IDF of words and pairs of words in the texts that a function takes of a document, one for each label."""

    def fit(train: Documents) -> Features:
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [text for each in train for text in texts_of(each)]
        texts_with = Counter(term for text in texts for term in {*terms(text)})
        known = [term for term, number in texts_with.most_common(MOST) if number > 1] or [*texts_with][:MOST]
        vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True, vocabulary=sorted(known)).fit(texts)
        return lambda documents: vectorizer.transform([text for each in documents for text in texts_of(each)])

    return fit


def terms(text: str) -> list[str]:
    """Returns the words of a text and the pairs of words; an empty text has one term of its own."""
    words = words_of(text)
    return [*words, *(f"{a} {b}" for a, b in zip(words, words[1:], strict=False))] or [""]


def _with_neighbours(train: Documents) -> Features:
    """Words of the segment, and beside them words of its neighbours and its place."""
    from scipy.sparse import hstack

    own, near, place = _of_words(lambda each: each.texts)(train), _of_words(_neighbours)(train), _places(train)
    return lambda documents: hstack([own(documents), near(documents), place(documents)]).tocsr()


def _neighbours(document: LabelledDocument) -> list[str]:
    texts = document.texts
    return [
        " ".join([*texts[max(0, n - NEIGHBOURS) : n], *texts[n + 1 : n + 1 + NEIGHBOURS]]) for n in range(len(texts))
    ]


def _places(train: Documents) -> Features:
    """In which of `PLACES` parts of its document a segment stands, and whether it is the first or the last."""

    def features(documents: Documents) -> np.ndarray:
        rows = []
        for each in documents:
            for number in range(count := len(each.texts)):
                row = np.zeros(PLACES + 2)
                row[number * PLACES // count] = 1
                row[PLACES], row[PLACES + 1] = number == 0, number == count - 1
                rows.append(row)
        return np.stack(rows)

    return features


def _mean_vectors(train: Documents) -> Features:
    """The mean vector of a document, each channel standardised."""
    means, deviations = (f(_means(train), axis=0) for f in (np.mean, np.std))
    return lambda documents: (_means(documents) - means) / (deviations + 1e-6)


def _means(documents: Documents) -> np.ndarray:
    return np.stack([each.vectors.mean(axis=0) for each in documents if each.vectors is not None])


MAJORITY = "majority"
OF_DOCUMENTS = {
    MAJORITY: Regression("majority", None),
    "words-512": Regression(
        "words, first 512 tokens", _of_words(lambda each: [" ".join(words_of(each.texts[0])[:FIRST])])
    ),
    "words": Regression("words", _of_words(lambda each: each.texts)),
    "vectors": Regression("mean of vectors", _mean_vectors, needs_vectors=True),
}
OF_SEGMENTS = {
    MAJORITY: Regression("majority", None),
    "place": Regression("place", _places),
    "words": Regression("words of the segment", _of_words(lambda each: each.texts)),
    "neighbours": Regression("words with neighbours", _with_neighbours),
}
