"""`hat score classification`: scikit-learn's figures exactly, intervals, and pooling."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from hat_fairseq import cli
from hat_fairseq.scoring.labels import score_labels

CLASSES = ["politics", "sport", "arts", "never right", "never predicted"]


def corpus(documents: int, longest: int) -> tuple[dict[str, tuple[str | None, ...]], dict[str, tuple[str, ...]]]:
    """Predictions, right two times out of three, and references; one class is never right, one never predicted."""
    draw = random.Random(documents)
    golds = {f"d{n}": tuple(draw.choices(CLASSES, k=draw.randint(1, longest))) for n in range(documents)}

    def guess(gold: str) -> str:
        other = draw.choice(CLASSES[:4])
        return other if gold in CLASSES[3:] or draw.random() < 0.33 else gold

    return {i: tuple(map(guess, labels)) for i, labels in golds.items()}, golds


def sklearn_figures(guesses: list[str], golds: list[str]) -> list[float]:
    f1 = {average: f1_score(golds, guesses, average=average) for average in ("micro", "macro")}
    return [100 * accuracy_score(golds, guesses), 100 * f1["micro"], 100 * f1["macro"]]


@pytest.mark.filterwarnings("ignore:Precision is ill-defined", "ignore:.*no predicted samples")
@pytest.mark.parametrize("longest", [1, 7])
def test_figures_and_classes_are_scikit_learns(longest: int) -> None:
    hypotheses, references = corpus(60, longest)
    report = score_labels(hypotheses, references, samples=0)
    guesses, golds = (sum(labels.values(), ()) for labels in (hypotheses, references))
    assert [figure.mean for figure in report.figures.values()] == pytest.approx(sklearn_figures(guesses, golds), 1e-12)
    names = sorted({*guesses, *golds})
    columns = precision_recall_fscore_support(golds, guesses, labels=names, zero_division=0)
    assert list(report.classes) == names and report.elements == len(golds)
    for name, precision, recall, f1, support in zip(names, *columns, strict=True):
        expected = [100 * precision, 100 * recall, 100 * f1, support, guesses.count(name)]
        assert list(report.classes[name].values()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("documents", "longest"), [(25, 4), (9, 1)])
def test_intervals_are_those_of_scikit_learn_on_the_same_resampled_documents(documents: int, longest: int) -> None:
    """Of nine documents some resampled sets lack a class."""
    hypotheses, references = corpus(documents, longest)
    report = score_labels(hypotheses, references, samples=40, seed=3)
    draw, ids, drawn = np.random.default_rng(3), list(references), []
    for _ in range(40):
        chosen = [ids[n] for n in draw.integers(0, len(ids), len(ids))]
        pooled = [[label for i in chosen for label in labels[i]] for labels in (hypotheses, references)]
        drawn.append(sklearn_figures(*pooled))
    for figure, values in zip(report.figures.values(), zip(*drawn, strict=True), strict=True):
        assert [figure.low, figure.high] == pytest.approx(np.percentile(values, [2.5, 97.5]), rel=1e-12)
        assert figure.low < figure.mean < figure.high


def test_an_element_without_prediction_is_wrong_and_belongs_to_no_class() -> None:
    report = score_labels({"a": ("x", "y", None)}, {"a": ("x", "y", "y")}, samples=0)
    figures = [figure.mean for figure in report.figures.values()]
    # 2 of 3 right; micro: 2 predicted, 3 wanted, 2 hits; macro: x 1, y 2 / 3
    assert figures == pytest.approx([200 / 3, 80, 100 * (1 + 2 / 3) / 2])
    assert report.missing == 1 and report.classes["y"]["recall"] == 50


def test_the_number_of_a_choice_and_its_digits_are_the_same_label(tmp_path: Path, capsys) -> None:
    rows = {"r": {"id": "a", "choices": ["x", "y"], "label": 1}, "h": {"id": "a", "label": "1", "probabilities": [0.2]}}
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    files = ["--hypotheses", f"{tmp_path}/h.jsonl", "--references", f"{tmp_path}/r.jsonl"]
    assert cli.main(["score", "classification", *files, "--bootstrap-samples", "0"]) == 0
    assert "h.jsonl  100.00  " in capsys.readouterr().out
