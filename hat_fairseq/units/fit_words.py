"""Fits the linear path over words (`units.words`) to the training documents or units, before a training begins.

The strength of the L2 penalty is chosen by cross-validation inside the training documents, by their log loss: the
probabilities are averaged with those of the network, so they must be no more certain than they may be.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..threads import one_thread
from .words import LEAST, UnitWords, Words, neighbours_of, split_units, terms_of

logger = logging.getLogger(__name__)

STRENGTHS = (1.0, 10.0, 100.0)  # scikit-learn's C, the inverse of the L2 penalty
FOLDS, MOST_DOCUMENTS = 3, 2_000  # of the cross-validation
ITERATIONS = 300
TOGETHER = 256  # documents whose terms are looked up at once
MOST_UNITS = 50_000  # to which the regression of units is fitted; of more it reads some of each document


def fit_head(head: Any, dataset: Any) -> None:
    """Fits the words of a head for labels to a dataset of `tasks`."""
    samples = [dataset[index] for index in range(len(dataset))]
    fit: Any = fit_unit_words if head.level == "segment" else fit_words
    fit(head.words, [each["tokens"][0] for each in samples], [each["target"] for each in samples])


def fit_words(words: Words, documents: Sequence[Tensor], labels: Sequence[int]) -> None:
    """Chooses the terms of training documents, (T,) ids each, and fits the weights to their labels.

    Documents of one label only have no regression.
    """
    _fit([words], [documents], labels, "documents")


def fit_unit_words(words: UnitWords, documents: Sequence[Tensor], labels: Sequence[Sequence[int]]) -> None:
    """Does the same for units, each with a label, or a negative number for none."""
    own, near, gold = list[Tensor](), list[Tensor](), list[int]()
    every = max(1, -(-sum(map(len, labels)) // MOST_UNITS))
    for document, of_units in zip(documents, labels, strict=True):
        units = split_units(document)
        chosen = [number for number, label in enumerate(of_units) if label >= 0][len(gold) % every :: every]
        around = neighbours_of(units)
        own += [units[number] for number in chosen]
        near += [around[number] for number in chosen]
        gold += [of_units[number] for number in chosen]
    _fit([words.own, words.near], [own, near], gold, "units")


def _fit(parts: Sequence[Words], texts: Sequence[Sequence[Tensor]], labels: Sequence[int], what: str) -> None:
    """Fits parts, each to the terms of texts of its own, so that the sum of their logits is one regression."""
    from scipy.sparse import hstack

    if len({*labels}) < 2:
        logger.warning("words: the training %s have one label only, so nothing is fitted", what)
        return
    frequent = [frequent_terms(own, len(words.terms)) for words, own in zip(parts, texts, strict=True)]
    sizes = [len(terms) for terms, _ in frequent]
    if not sizes[0]:
        logger.warning("words: no term is in %d training %s, so nothing is fitted", LEAST, what)
        return
    for words, (terms, frequency) in zip(parts, frequent, strict=True):
        words.set_terms(terms, 1 + torch.log((1 + len(labels)) / (1 + frequency)))
    each = [rows_of(words, own, size) for words, own, size in zip(parts, texts, sizes, strict=True)]
    rows, gold = hstack(each).tocsr(), np.array(labels)
    strength = best_strength(rows, gold)
    weight, bias = regression(rows, gold, strength)
    known, classes = np.unique(gold), len(parts[0].bias)
    full = np.full(classes, np.log(1e-6)), np.zeros((classes, sum(sizes)))  # also of classes without documents
    full[0][known], full[1][known] = bias, weight
    for number, words in enumerate(parts):
        begin = sum(sizes[:number])
        own_weight = torch.from_numpy(full[1][:, begin : begin + sizes[number]])
        words.set_weights(own_weight, torch.from_numpy(full[0]) * (number == 0))
    logger.info("words: %d terms of %d training %s, C %g", sum(sizes), len(labels), what, strength)


def frequent_terms(documents: Sequence[Tensor], most: int) -> tuple[Tensor, Tensor]:
    """Returns the terms of most documents, in order, and in how many each is; none in fewer than `LEAST`."""
    terms, frequency = torch.cat([terms_of(each)[0] for each in documents]).unique(return_counts=True)
    often = torch.argsort(frequency, descending=True, stable=True)[:most]
    chosen = often[frequency[often] >= LEAST].sort().values
    return terms[chosen], frequency[chosen]


def rows_of(words: Words, documents: Sequence[Tensor], terms: int) -> Any:
    """Returns the features of documents as a sparse matrix of scipy, (D, M)."""
    from scipy.sparse import csr_array, vstack

    parts = []
    for begin in range(0, len(documents), TOGETHER):
        some = [each.to(words.terms.device) for each in documents[begin : begin + TOGETHER]]
        documents_of, places, values = (each.cpu().numpy() for each in words.features(some))
        entries = values.astype(float), (documents_of, places)
        parts.append(csr_array(entries, shape=(len(some), terms)))
    return vstack(parts, format="csr")


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

    with one_thread():
        fitted = LogisticRegression(C=strength, max_iter=ITERATIONS).fit(rows, labels)
    weight, bias = fitted.coef_, fitted.intercept_
    if len(weight) == 1:  # of the second of two classes
        return np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight, bias
