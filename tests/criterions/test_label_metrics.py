"""Accuracy and F1 from counts against scikit-learn, however the labels are divided; spans against all of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from hat_fairseq.criterions.answers import SUMS, AnswerSpans, best_spans
from hat_fairseq.criterions.labels import COUNTS, DocumentLabels, counts, f1_macro, f1_micro


def log(predicted: Tensor, target: Tensor, num_classes: int) -> dict[str, object]:
    """What the criterion logs for these labels."""
    right = predicted.eq(target).sum()
    table = counts(predicted, target, num_classes)
    return {"loss": torch.tensor(1.5) * len(target), "sample_size": len(target), "correct": right, COUNTS: table}


@pytest.mark.parametrize(("classes", "used"), [(2, 2), (5, 5), (7, 3)])  # some occur nowhere
@pytest.mark.parametrize("sizes", [[41], [1, 3, 0, 29, 8]])
def test_figures_are_scikit_learns(classes: int, used: int, sizes: list[int]) -> None:
    generator = torch.Generator().manual_seed(classes)
    predicted, target = torch.randint(0, used, (2, 41), generator=generator)
    target[:15] = predicted[:15]
    with metrics.aggregate(new_root=True) as meters:
        batches = zip(predicted.split(sizes), target.split(sizes), strict=True)
        for p, t in batches:  # one reduction each, as in fairseq
            DocumentLabels.reduce_metrics([log(p, t, classes)])
    values, true, guess = meters.get_smoothed_values(), target.tolist(), predicted.tolist()
    assert values["accuracy"] == pytest.approx(100 * accuracy_score(true, guess), abs=1e-3)
    assert values["f1_micro"] == pytest.approx(100 * f1_score(true, guess, average="micro"), abs=1e-3)
    assert values["f1_macro"] == pytest.approx(100 * f1_score(true, guess, average="macro"), abs=1e-3)
    assert values["f1_macro"] != values["f1_micro"] and values["loss"] == pytest.approx(1.5 / 0.693147, abs=1e-3)


def test_one_reduction_of_many_processes_is_the_same() -> None:
    generator = torch.Generator().manual_seed(0)
    predicted, target = torch.randint(0, 4, (2, 30), generator=generator)
    logs = [log(p, t, 4) for p, t in zip(predicted.split(7), target.split(7), strict=True)]
    table = counts(predicted, target, 4)
    with metrics.aggregate(new_root=True) as meters:
        DocumentLabels.reduce_metrics(logs)
    assert meters.get_smoothed_values()["f1_macro"] == f1_macro(table)
    assert meters.get_smoothed_values()["f1_micro"] == f1_micro(table)
    assert sum(log["correct"] for log in logs) == table[:, 0].sum()


def test_nothing_labelled_is_no_division_by_zero() -> None:
    with metrics.aggregate(new_root=True) as meters:
        DocumentLabels.reduce_metrics([log(torch.tensor([]).long(), torch.tensor([]).long(), 3)])
    values = meters.get_smoothed_values()
    assert values["accuracy"] == values["f1_micro"] == values["f1_macro"] == 0


@pytest.mark.parametrize("length", [1, 2, 9, 17])
def test_the_best_span_is_the_best_of_all(length: int) -> None:
    logits = torch.randn(200, length, 2, generator=torch.Generator().manual_seed(length))
    logits[:, 1:4] = torch.where(torch.rand(200, 1, 1) < 0.3, float("-inf"), logits[:, 1:4])  # question, separators
    if length > 1:
        assert best_spans(logits)[:, 1].bool().any()
    for row, span in zip(logits, best_spans(logits).tolist(), strict=True):
        spans = [(0, 0)] + [(a, b) for a in range(1, length) for b in range(a, length)]
        scores = [float(row[a, 0] + row[b, 1]) for a, b in spans]
        assert tuple(span) == spans[scores.index(max(scores))]


def test_accuracies_of_spans_are_sums_over_batches() -> None:
    with metrics.aggregate(new_root=True) as meters:
        for values in [(4, 2, 3, 1), (1, 1, 0, 0), (3, 0, 3, 0)]:
            log = dict(zip(SUMS, values, strict=True)) | {"loss": 0.0, "sample_size": values[0]}
            AnswerSpans.reduce_metrics([log])
    assert meters.get_smoothed_values()["accuracy"] == pytest.approx(100 * 3 / 8)
    assert meters.get_smoothed_values()["has_answer_accuracy"] == pytest.approx(100 * 1 / 6, abs=1e-3)


def test_any_of_several_answers_is_right() -> None:
    """The probabilities of their first tokens are added, each token's once, and those of their last tokens."""
    logits = torch.randn(3, 9, 2, generator=torch.Generator().manual_seed(0))
    logits[:, 1:3] = float("-inf")
    logits.requires_grad_()
    spans = [[(3, 4), (3, 6), (8, 8)], [(5, 5)], [(0, 0)]]
    target = torch.tensor([[3, 4, 3, 6, 8, 8], [5, 5, -100, -100, -100, -100], [0, 0, -100, -100, -100, -100]])
    criterion = AnswerSpans(SimpleNamespace(default_criterion="answer_spans"))
    loss, rows, log = criterion.compute(logits, target)
    wanted = torch.zeros(())
    for scores, right in zip(logits.softmax(dim=1), spans, strict=True):
        for side in (0, 1):
            wanted = wanted - sum(scores[place, side] for place in {span[side] for span in right}).log() / 2
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    assert logits.grad is not None and logits.grad.isfinite().all()
    best = [tuple(span) for span in best_spans(logits).tolist()]
    assert rows == 3 and log["answers"] == 2
    assert log["exact"] == sum(span in right for span, right in zip(best, spans, strict=True))
    one = criterion.compute(logits, target[:, :2])[0]
    torch.testing.assert_close(one, F.cross_entropy(logits, target[:, :2], reduction="sum") / 2)
