"""The loss in chunks is a projection followed by fairseq's loss; the logits of all positions never exist at once."""

from typing import Any

import pytest
import torch
from building import BOS, PAD
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from helpers import assert_close
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hat_fairseq.kernels import chunked_label_smoothed_loss, loss, naive


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "smoothing"), [(1, 0.1), (7, 0.9), (7, 0.0), (1000, 0.1)])
def test_the_loss_itself(rows: int, smoothing: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of `rows` positions: every gradient, with logits of a size that matters."""
    monkeypatch.setattr(loss, "CHUNK", 60 * rows)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(3, 5, 24, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(60, 24, generator=generator).to(dtype).requires_grad_()
    target = torch.randint(0, 60, (3, 5), generator=generator)
    target[0, 3:] = target[2] = PAD
    result, nll, correct = chunked_label_smoothed_loss(features, weight, target, smoothing, PAD, count_correct=True)
    expected, expected_nll = naive.label_smoothed_loss(features, weight, target, smoothing, PAD)
    logits = naive.linear(features, weight).flatten(0, 1)
    reference = label_smoothed_nll_loss(logits.float().log_softmax(-1), target.flatten(), smoothing, PAD)
    rtol = 1e-4 if dtype is torch.float32 else 2 * torch.finfo(dtype).eps  # of the logits
    for losses in (torch.stack(reference), torch.stack([result, nll])):
        torch.testing.assert_close(losses, torch.stack([expected, expected_nll]), rtol=rtol, atol=2e-5)
    assert int(correct) == int((logits.argmax(1).eq(target.flatten()) & target.flatten().ne(PAD)).sum())
    gradients = torch.autograd.grad(result * 3, [features, weight])
    for one, other in zip(gradients, torch.autograd.grad(expected * 3, [features, weight]), strict=True):
        assert one.dtype is dtype
        assert_close(one, other, dtype, bf16_error=0.02)


@pytest.mark.parametrize("large", ["features", "weight"])
def test_fp16_recovers_at_the_loss_scales_at_which_it_does_without_chunks(large: str) -> None:
    """The same next symbol 300 times, after an outlier: with a fixed scale the sums overflow at every loss scale."""
    features, weight = 0.1 * torch.randn(300, 24), 0.1 * torch.randn(60, 24)
    if large == "features":
        features[:, 3], weight[:, 3] = 200, 0
    else:
        features[:, 3], weight[5, 3] = 0, 8000
    target = torch.full((300,), 5)
    features, weight = (x.half().requires_grad_() for x in (features, weight))

    def finite(scale: float) -> tuple[list[bool], list[list[Tensor]]]:
        chunked = chunked_label_smoothed_loss(features, weight, target, 0.1, PAD)[0]
        log_probabilities = torch.nn.functional.linear(features, weight).float().log_softmax(-1)
        plain = label_smoothed_nll_loss(log_probabilities, target, 0.1, PAD)[0]
        both = [list(torch.autograd.grad(loss * scale, [features, weight])) for loss in (chunked, plain)]
        return [all(bool(x.isfinite().all()) for x in gradients) for gradients in both], both

    results = {scale: finite(scale) for scale in (2.0**16, 1.0, 0.25)}
    assert [pair for pair, _ in results.values()] == [[False, False], [True, True], [True, True]]
    for one, other in zip(*results[1.0][1], strict=True):
        torch.testing.assert_close(one, other, rtol=5e-3, atol=1e-3 * float(other.abs().max()))


@pytest.mark.parametrize("outlier", [0.0, -7000.0, 7000.0])
def test_fp16_has_the_gradients_of_a_surprising_symbol(outlier: float) -> None:
    """A large weight in either direction; without it, fp16 hardly has the probabilities of the other symbols."""
    features, weight = torch.zeros(300, 24), torch.zeros(60, 24)
    features[:, 0], weight[7, 0] = 4, 4
    weight[5, 3] = outlier
    target, wide = torch.full((300,), 5), [x.double().requires_grad_() for x in (features, weight)]
    half = [x.half().requires_grad_() for x in (features, weight)]
    for inputs, function in ((half, chunked_label_smoothed_loss), (wide, naive.label_smoothed_loss)):
        function(*inputs, target, 0.0, PAD)[0].backward()
    for one, other in zip(half, wide, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=0.03, atol=1e-5 if outlier else 0)


def test_nothing_but_padding_is_no_loss_and_no_gradient() -> None:
    features, weight = torch.randn(2, 3, 8, requires_grad=True), torch.randn(60, 8, requires_grad=True)
    loss, nll, _ = chunked_label_smoothed_loss(features, weight, torch.full((2, 3), PAD), 0.1, PAD)
    loss.backward()
    assert loss.item() == nll.item() == 0
    assert not features.grad.any()
    assert not weight.grad.any()


def test_a_large_table() -> None:
    """Large enough for oneDNN; features without a gradient."""
    torch.manual_seed(0)
    features, weight = torch.randn(5, 16), torch.randn(5000, 16, requires_grad=True)
    target = torch.randint(4, 5000, (5,))
    loss = chunked_label_smoothed_loss(features, weight, target, 0.1, PAD)[0]
    expected = naive.label_smoothed_loss(features, weight, target, 0.1, PAD)[0]
    assert_close(loss, expected)
    (gradients,), (reference,) = (torch.autograd.grad(one, [weight]) for one in (loss, expected))
    assert_close(gradients, reference)


class Largest(TorchDispatchMode):
    """The most entries that a result of any operation has."""

    entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.entries = max([self.entries, *(x.numel() for x in tree_leaves(result) if isinstance(x, Tensor))])
        return result


def test_no_tensor_holds_the_logits_of_all_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8 * 5000)
    features, weight = torch.randn(64, 8, requires_grad=True), torch.randn(5000, 8, requires_grad=True)
    with Largest() as largest:
        chunked_label_smoothed_loss(features, weight, torch.full((64,), BOS), 0.1, PAD)[0].backward()
    assert largest.entries == 8 * 5000
