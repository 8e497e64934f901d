"""Fits the linear path over words (`modules.words`) to the training documents, before a training begins.

The strength of the L2 penalty is chosen by cross-validation inside the training documents, by their log loss: the
probabilities are averaged with those of the network, so they must be no more certain than they may be.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..modules.words import LEAST, Words, terms_of

logger = logging.getLogger(__name__)

STRENGTHS = (1.0, 10.0, 100.0)  # scikit-learn's C, the inverse of the L2 penalty
FOLDS, MOST_DOCUMENTS = 3, 2_000  # of the cross-validation
ITERATIONS = 300


def fit_words(words: Words, documents: Sequence[Tensor], labels: Sequence[int]) -> None:
    """Chooses the terms of training documents, (T,) ids each, and fits the weights to their labels.

    Documents of one label only have no regression.
    """
    if len({*labels}) < 2:
        logger.warning("words: the training documents have one label only, so nothing is fitted")
        return
    terms, frequency = frequent_terms(documents, len(words.terms))
    if not len(terms):
        logger.warning("words: no term is in %d training documents, so nothing is fitted", LEAST)
        return
    words.set_terms(terms, 1 + torch.log((1 + len(documents)) / (1 + frequency)))
    rows, gold = rows_of(words, documents, len(terms)), np.array(labels)
    strength = best_strength(rows, gold)
    weight, bias = regression(rows, gold, strength)
    full = np.full(len(words.bias), np.log(1e-6)), np.zeros((len(words.bias), len(terms)))  # classes without documents
    known = np.unique(gold)
    full[0][known], full[1][known] = bias, weight
    words.set_weights(torch.from_numpy(full[1]), torch.from_numpy(full[0]))
    logger.info("words: %d terms of %d training documents, C %g", len(terms), len(documents), strength)


def frequent_terms(documents: Sequence[Tensor], most: int) -> tuple[Tensor, Tensor]:
    """Returns the terms of most documents, in order, and in how many each is; none in fewer than `LEAST`."""
    terms, frequency = torch.cat([terms_of(each)[0] for each in documents]).unique(return_counts=True)
    often = torch.argsort(frequency, descending=True, stable=True)[:most]
    chosen = often[frequency[often] >= LEAST].sort().values
    return terms[chosen], frequency[chosen]


def rows_of(words: Words, documents: Sequence[Tensor], terms: int) -> Any:
    """Returns the features of documents as a sparse matrix of scipy, (D, M)."""
    from scipy.sparse import csr_array

    pairs = [words.features(each.to(words.terms.device)) for each in documents]
    places, values = (torch.cat(each).cpu().double().numpy() for each in zip(*pairs, strict=True))
    ends = np.cumsum([0, *(len(each) for each, _ in pairs)])
    return csr_array((values, places.astype(np.int64), ends), shape=(len(documents), terms))


def best_strength(rows: Any, labels: np.ndarray) -> float:
    """Chooses one of `STRENGTHS`; the middle one if a label has too few documents for each fold."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    if np.unique(labels, return_counts=True)[1].min() < FOLDS:
        return STRENGTHS[1]
    if len(labels) > MOST_DOCUMENTS:
        chosen = np.random.default_rng(0).permutation(len(labels))[:MOST_DOCUMENTS]
        return best_strength(rows[chosen], labels[chosen])
    folds = [*StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(labels, labels)]
    known = np.unique(labels)

    def loss(strength: float) -> float:
        losses = []
        for train, test in folds:
            weight, bias = regression(rows[train], labels[train], strength)
            logits = torch.from_numpy(rows[test] @ weight.T + bias)
            losses.append(log_loss(labels[test], logits.softmax(dim=1).numpy(), labels=known))
        return float(np.mean(losses))

    return min(STRENGTHS, key=loss)


def regression(rows: Any, labels: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Fits (K, M) weights and (K,) biases for the labels that occur."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=strength, max_iter=ITERATIONS).fit(rows, labels)
    weight, bias = fitted.coef_, fitted.intercept_
    if len(weight) == 1:  # of the second of two classes
        return np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight, bias
