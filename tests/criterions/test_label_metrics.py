"""Accuracy and F1 from counts against scikit-learn, however the labels are divided; spans against all of them."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from hat_fairseq.criterions.labels import COUNTS, AnswerSpans, DocumentAnswers, DocumentLabels, best_spans, counts


def log(predicted: Tensor, target: Tensor, num_classes: int) -> dict[str, object]:
    """What the criterion logs for these labels."""
    right = predicted.eq(target).sum()
    sums = {"labels": len(target), "correct": right, COUNTS: counts(predicted, target, num_classes)}
    return {"loss": torch.tensor(1.5) * len(target), "sample_size": len(target)} | sums


def logged(logs: list[dict[str, object]], *more: list[dict[str, object]]) -> dict[str, float]:
    """The figures after a reduction of each list."""
    with metrics.aggregate(new_root=True) as meters:
        for each in (logs, *more):
            DocumentLabels.reduce_metrics(each)
    return meters.get_smoothed_values()


@pytest.mark.parametrize(("classes", "used"), [(2, 2), (5, 5), (7, 3)])  # some occur nowhere
def test_figures_are_scikit_learns_however_the_labels_are_divided(classes: int, used: int) -> None:
    generator = torch.Generator().manual_seed(classes)
    predicted, target = torch.randint(0, used, (2, 41), generator=generator)
    target[:15] = predicted[:15]
    predicted[target.eq(0)] = 1  # a class that is never right counts in the mean
    parts = zip(predicted.split([1, 3, 0, 29, 8]), target.split([1, 3, 0, 29, 8]), strict=True)
    logs = [log(p, t, classes) for p, t in parts]
    values, true, guess = logged(*([each] for each in logs)), target.tolist(), predicted.tolist()
    assert values["accuracy"] == pytest.approx(100 * accuracy_score(true, guess), abs=1e-3)
    assert values["f1_micro"] == pytest.approx(100 * f1_score(true, guess, average="micro"), abs=1e-3)
    assert values["f1_macro"] == pytest.approx(100 * f1_score(true, guess, average="macro"), abs=1e-3)
    assert values["f1_macro"] != values["f1_micro"]
    assert values["loss"] == pytest.approx(1.5 / 0.693147, abs=1e-3)
    assert logged(logs) == values  # many processes, one reduction


def test_nothing_labelled_is_no_division_by_zero() -> None:
    values = logged([log(torch.tensor([]).long(), torch.tensor([]).long(), 3)])
    assert values["accuracy"] == values["f1_micro"] == values["f1_macro"] == 0


def test_what_has_no_label_is_neither_counted_nor_in_the_loss() -> None:
    logits, target = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([[2, 0, -100]] * 2)
    criterion = DocumentLabels(SimpleNamespace(default_criterion="document_labels", labels=list("abcd")))
    loss, number, sums = criterion.compute(logits, target)
    torch.testing.assert_close(loss, F.cross_entropy(logits[:, :2].flatten(0, 1), torch.tensor([2, 0, 2, 0])) * 4)
    right = logits[:, :2].argmax(-1).eq(torch.tensor([2, 0])).sum()
    assert number == 4
    assert sums["correct"] == right == sums[COUNTS][:, 0].sum()
    assert sums[COUNTS][:, [0, 2]].sum() == 4


@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_best_span_is_the_best_of_all(length: int) -> None:
    logits = torch.randn(99, length, 2, generator=torch.Generator().manual_seed(length))
    logits[:, 1:4] = torch.where(torch.rand(99, 1, 1) < 0.3, float("-inf"), logits[:, 1:4])  # question, separators
    assert length == 1 or best_spans(logits)[:, 1].any()
    for row, span in zip(logits, best_spans(logits).tolist(), strict=True):
        spans = [(0, 0)] + [(a, b) for a in range(1, length) for b in range(a, length)]
        scores = [float(row[a, 0] + row[b, 1]) for a, b in spans]
        assert tuple(span) == spans[scores.index(max(scores))]


def test_accuracies_of_spans_are_sums_over_batches() -> None:
    with metrics.aggregate(new_root=True) as meters:
        for rows, exact, answers, exact_answers in [(4, 2, 3, 1), (1, 1, 0, 0), (3, 0, 3, 0)]:
            log = {"rows": rows, "exact": exact, "answers": answers, "exact_answers": exact_answers}
            AnswerSpans.reduce_metrics([log | {"loss": 0.0, "sample_size": rows}])
    assert meters.get_smoothed_values()["accuracy"] == pytest.approx(100 * 3 / 8)
    assert meters.get_smoothed_values()["has_answer_accuracy"] == pytest.approx(100 * 1 / 6, abs=1e-3)


def test_answers_in_documents_have_the_mean_of_three_losses_and_their_own_accuracies() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = {"span": (9, 7, 2), "paragraph": (9, 4), "type": (9, 5)}
    logits = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    best = {name: logits[name].argmax(dim=1) for name in ("paragraph", "type")}
    target = torch.stack([torch.arange(9) % 5, torch.full((9,), 5), best["paragraph"], best["type"]], dim=1)
    target[:2, 2], target[:3, 3] = (best["paragraph"][:2] + 1) % 4, (best["type"][:3] + 1) % 5
    loss, rows, log = DocumentAnswers(SimpleNamespace(default_criterion="document_answers")).compute(logits, target)
    spans = F.cross_entropy(logits["span"], target[:, :2], reduction="sum") / 2
    others = (
        F.cross_entropy(logits[name], target[:, n], reduction="sum") for n, name in ((2, "paragraph"), (3, "type"))
    )
    torch.testing.assert_close(loss, (spans + sum(others)) / 3)
    with metrics.aggregate(new_root=True) as meters:
        DocumentAnswers.reduce_metrics([log | {"loss": loss, "sample_size": rows}])
    values = meters.get_smoothed_values()
    assert values["paragraph_accuracy"] == pytest.approx(100 * 7 / 9, abs=1e-3)
    assert values["type_accuracy"] == pytest.approx(100 * 6 / 9, abs=1e-3)


def test_the_distributions_of_an_answer_have_the_weights_that_they_have_in_the_loss() -> None:
    """Each cross-entropy times its weight is the loss, so that the regularization of attention weighs alike."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"span": (9, 7, 2), "paragraph": (9, 4), "type": (9, 5)}
    logits = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    target = torch.stack([torch.randint(0, most, (9,), generator=generator) for most in (7, 7, 4, 5)], dim=1)
    wanted = [target[:, :2].flatten(), target[:, 2], target[:, 3]]
    criterion = DocumentAnswers(SimpleNamespace(default_criterion="document_answers"))
    distributions = criterion.distributions(logits, target)
    assert [weight for _, weight in distributions] == pytest.approx([1 / 6, 1 / 3, 1 / 3])
    losses = [
        weight * F.cross_entropy(x, y, reduction="sum") for (x, weight), y in zip(distributions, wanted, strict=True)
    ]
    torch.testing.assert_close(sum(losses), criterion.compute(logits, target)[0])


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
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    best = [tuple(span) for span in best_spans(logits).tolist()]
    assert rows == 3
    assert log["answers"] == 2
    assert log["exact"] == sum(span in right for span, right in zip(best, spans, strict=True))
    one = criterion.compute(logits, target[:, :2])[0]
    torch.testing.assert_close(one, F.cross_entropy(logits, target[:, :2], reduction="sum") / 2)
