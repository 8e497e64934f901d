"""`hat score classification`: scikit-learn's figures exactly, intervals, and pooling."""

import random

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from hat_fairseq.scoring.labels import classification

CLASSES = ["politics", "sport", "arts", "never right", "never predicted"]


def sklearn_figures(guesses: list[str], golds: list[str]) -> list[float]:
    f1 = {average: f1_score(golds, guesses, average=average) for average in ("micro", "macro")}
    return [100 * accuracy_score(golds, guesses), 100 * f1["micro"], 100 * f1["macro"]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Precision is ill-defined", "ignore:.*no predicted samples")
@pytest.mark.parametrize(("documents", "longest"), [(60, 1), (25, 7), (9, 1)])
def test_figures_classes_and_intervals_are_scikit_learns(documents: int, longest: int) -> None:
    """Predictions are right two times out of three. Of nine documents some resampled sets lack a class."""
    draw = random.Random(documents)
    references = {f"d{n}": tuple(draw.choices(CLASSES, k=draw.randint(1, longest))) for n in range(documents)}

    def guess(gold: str) -> str:
        other = draw.choice(CLASSES[:4])
        return other if gold in CLASSES[3:] or draw.random() < 0.33 else gold

    hypotheses = {name: tuple(map(guess, labels)) for name, labels in references.items()}
    report = classification(list(hypotheses.values()), list(references.values()), bootstrap_samples=40, seed=3)
    guesses, golds = (sum(labels.values(), ()) for labels in (hypotheses, references))
    assert [figure.mean for figure in report.scores.values()] == pytest.approx(sklearn_figures(guesses, golds), 1e-12)
    names = sorted({*guesses, *golds})
    columns = precision_recall_fscore_support(golds, guesses, labels=names, zero_division=0)
    assert list(report.classes) == names
    assert report.elements == len(golds)
    for name, precision, recall, f1, support in zip(names, *columns, strict=True):
        expected = [100 * precision, 100 * recall, 100 * f1, support, guesses.count(name)]
        assert list(report.classes[name].values()) == pytest.approx(expected, rel=1e-12)
    numbers, ids, drawn = np.random.default_rng(3), list(references), []
    for _ in range(40):
        chosen = [ids[n] for n in numbers.integers(0, len(ids), len(ids))]
        pooled = [[label for i in chosen for label in labels[i]] for labels in (hypotheses, references)]
        drawn.append(sklearn_figures(*pooled))
    for figure, values in zip(report.scores.values(), zip(*drawn, strict=True), strict=True):
        assert [figure.low, figure.high] == pytest.approx(np.percentile(values, [2.5, 97.5]), rel=1e-12)


def test_a_document_may_have_no_label() -> None:
    report = classification([[], ["a", "b"], []], [[], ["a", "a"], []], bootstrap_samples=20)
    assert (report.elements, report.documents, report.scores["accuracy"].mean) == (2, 3, 50)
    assert report.scores["accuracy"].low == 0  # of samples that have no label


def test_an_element_without_prediction_is_wrong_and_belongs_to_no_class() -> None:
    report = classification([("x", "y", None)], [("x", "y", "y")], bootstrap_samples=0)
    figures = [figure.mean for figure in report.scores.values()]
    # 2 of 3 right; micro: 2 predicted, 3 wanted, 2 hits; macro: x 1, y 2 / 3
    assert figures == pytest.approx([200 / 3, 80, 100 * (1 + 2 / 3) / 2])
    assert report.missing == 1
    assert report.signature.settings["labels"] == "pooled over documents"
    assert report.classes["y"]["recall"] == 50
