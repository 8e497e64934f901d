"""In fp64 every kernel computes in fp64: its results to 1e-14, its gradients by finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hat_fairseq.kernels import (
    Windows,
    attend,
    attend_blocks,
    attend_windows,
    chunked_label_smoothed_loss,
    key_blocks,
    naive,
)
from hat_fairseq.modules.batch_layout import span_means

FP64 = torch.float64
BLOCKS = key_blocks(torch.tensor([[[[0, 1], [1, -1]]]]), torch.tensor([[[True] * 3, [True, True, False]]]), FP64)
SHAPE, WINDOW = (1, 1, 6, 4), torch.ones(1, 1, 1, 7, dtype=torch.bool)


def in_blocks(dropout: float) -> Callable[..., Tensor]:
    return lambda *states: attend_blocks(*(x.unflatten(2, (2, 3)) for x in states), BLOCKS, dropout)


KERNELS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
    "blocks": (in_blocks(0.0), SHAPE),
    "blocks, dropout": (in_blocks(0.3), SHAPE),
    "windows": (lambda *states: attend_windows(*states, WINDOW, Windows(3, 3, 2, 7)), SHAPE),
    "attention, dropout": (lambda *states: attend(*states, None, 0.3), SHAPE),
    "attention, dropout, long": (lambda *states: attend(*states, None, 0.3).mean(2), (1, 1, 512, 1)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_finite_differences(name: str) -> None:
    function, shape = KERNELS[name]

    def seeded(*inputs: Tensor) -> Tensor:
        torch.manual_seed(1)
        return function(*inputs)

    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator, dtype=FP64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(seeded, inputs, fast_mode=True)


def test_results_are_in_fp64() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 5, 8, dtype=FP64)
    weights = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1)
    torch.testing.assert_close(naive.attention(q, k, v), (weights @ v, weights), rtol=0, atol=1e-14)
    with torch.no_grad():
        torch.testing.assert_close(attend(q, k, v), weights @ v, rtol=0, atol=1e-14)
    features, target = q.flatten(0, 2), torch.arange(30) % 7
    log_probabilities = (features @ features.t()).log_softmax(-1)
    expected = -log_probabilities.gather(1, target[:, None]).sum()
    for loss in (naive.label_smoothed_loss, chunked_label_smoothed_loss):
        torch.testing.assert_close(loss(features, features, target, 0.0, -1)[0], expected, rtol=1e-14, atol=0)
    means, _ = span_means(features[None], torch.zeros(1, 30, dtype=torch.long), 1)
    torch.testing.assert_close(means[0, 0], features.mean(0), rtol=0, atol=1e-14)
