"""Label-smoothed cross-entropy of a vocabulary projection, in chunks of positions, without keeping the logits.

Numerically equivalent to a projection followed by fairseq's `label_smoothed_nll_loss`, summed over the positions
(`naive.label_smoothed_loss`): with e the smoothing, d = e / (V - 1) and l the log-probabilities of a position with
target t,

    loss = -(1 - e - d) l[t] - d sum(l),     d loss / d logits = softmax - d - (1 - e - d) onehot(t).

The gradients are linear in the upstream gradient, so they are computed with the loss, while a chunk's logits are in
memory; the backward pass only scales them. The N x V logits, their log-probabilities and their gradients, with a large
vocabulary the largest tensors of a model, are never in memory at once.

Legend: N positions, C channels, V symbols.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 1 << 24  # logits of a chunk: 64 MB
FP16_SCALE = 16.0  # keeps the small gradients of logits above fp16's smallest number
FP16_LIMIT = 6e4  # a product below it does not overflow


def chunked_label_smoothed_loss(
    features: Tensor, weight: Tensor, target: Tensor, smoothing: float, pad: int, count_correct: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes loss, negative log-likelihood and number of correct predictions, summed over positions.

    Args:
        features: (..., C) and weight: (V, C), of one dtype; logits are computed in it, the loss in fp32 or wider.
        target: (...) symbols; `pad` is ignored.
        count_correct: otherwise the number is 0.
    Returns:
        Three scalars; gradients flow through the first.
    """
    features, target = features.reshape(-1, features.size(-1)), target.reshape(-1)
    if target.device.type == "cpu":  # elsewhere this would synchronise host and device
        real = target.ne(pad)
        if not real.all():
            features, target = features[real], target[real]
    device = target.device.type
    if torch.is_autocast_enabled(device):  # as autocast does with a projection
        features, weight = (x.to(torch.get_autocast_dtype(device)) for x in (features, weight))
    wanted = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    with torch.autocast(device, enabled=False):
        return _ChunkedLoss.apply(features, weight, target, smoothing, pad, count_correct, wanted)


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
        features, weight, target, smoothing, pad, count_correct, wanted = args
        wide = torch.promote_types(features.dtype, torch.float32)
        sums = features.new_zeros(3, dtype=wide)
        gradients = _Gradients(features, weight) if wanted else None
        size = max(1, CHUNK // len(weight))
        for first in range(0, len(target), size):
            chunk = slice(first, first + size)
            logits = F.linear(features[chunk], weight).to(wide)
            if count_correct:
                sums[2] += (logits.argmax(1).eq(target[chunk]) & target[chunk].ne(pad)).sum()
            log_probabilities = torch.log_softmax(logits, -1, out=logits)
            sums[:2] += _losses(log_probabilities, target[chunk], smoothing, pad)
            if gradients is not None:
                gradients.add(chunk, _grad_logits(log_probabilities, target[chunk], smoothing, pad))
        ctx.gradients = gradients
        loss, nll, correct = sums.unbind()
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("a second backward pass: the gradients are kept for one backward pass only")
        grad_features, grad_weight = ctx.gradients.scaled(upstream[0])
        ctx.gradients = None
        return grad_features, grad_weight, None, None, None, None, None


class _Gradients:
    """Gradients of features, filled in by chunks, and of the weight, summed over chunks in fp32 or wider.

    Products are scaled so that fp16 cannot overflow before `scaled`; an overflow there is handled by dynamic loss
    scaling as usual.
    """

    def __init__(self, features: Tensor, weight: Tensor) -> None:
        self._features, self._weight = features, weight
        self._is_fp16 = weight.dtype is torch.float16
        # a row of gradients of logits sums up to less than 2
        self._scale = _power_of_two(FP16_LIMIT / 2 / _largest(weight), FP16_SCALE) if self._is_fp16 else 1.0
        wide = torch.promote_types(weight.dtype, torch.float32)
        self._grad_features, self._grad_weight = torch.empty_like(features), torch.zeros_like(weight, dtype=wide)

    def add(self, chunk: slice, grad_logits: Tensor) -> None:
        """Adds to the gradients; `grad_logits`: (rows, V) fp32; it is overwritten."""
        features, weight = self._features[chunk], self._weight
        if self._is_fp16:
            grad_logits.mul_(self._scale)
        grad_logits = grad_logits.to(weight)
        self._grad_features[chunk] = grad_logits @ weight
        if self._is_fp16:  # a column of gradients of logits sums up to less than the number of rows
            down = _power_of_two(FP16_LIMIT / len(features) / self._scale / _largest(features), 1.0)
            self._grad_weight += (grad_logits.t() @ (features * down)).float().div_(down)
        elif weight.dtype is self._grad_weight.dtype:
            self._grad_weight.addmm_(grad_logits.t(), features)
        else:
            self._grad_weight += grad_logits.t() @ features

    def scaled(self, upstream: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the gradients without the scale of fp16, times the upstream gradient."""
        factor = upstream / self._scale
        return self._grad_features.mul_(factor), self._grad_weight.mul_(factor).to(self._weight)


def _largest(x: Tensor) -> Tensor:
    """The largest magnitude, as an fp32 scalar on the device of `x`."""
    least, most = x.aminmax()
    return torch.maximum(most, -least).float()


def _power_of_two(limit: Tensor, at_most: float) -> Tensor:
    """The largest power of two, a scalar, that is neither above `limit` nor above `at_most`."""
    return torch.exp2(limit.log2().floor()).clamp(max=at_most)


def _losses(log_probabilities: Tensor, target: Tensor, smoothing: float, pad: int) -> Tensor:
    """(rows, V) -> the sums of loss and negative log-likelihood."""
    real = target.ne(pad)
    nll = -(log_probabilities.gather(1, target[:, None]).squeeze(1) * real).sum()
    smooth = -(log_probabilities.sum(1) * real).sum()
    share = smoothing / (log_probabilities.size(1) - 1)
    return torch.stack([(1 - smoothing - share) * nll + share * smooth, nll])


def _grad_logits(log_probabilities: Tensor, target: Tensor, smoothing: float, pad: int) -> Tensor:
    """(rows, V) log-probabilities, overwritten -> gradient of the loss with respect to the logits."""
    share = smoothing / (log_probabilities.size(1) - 1)
    gradient = log_probabilities.exp_().sub_(share)
    gradient.scatter_add_(1, target[:, None], gradient.new_full((len(target), 1), share + smoothing - 1))
    return gradient.mul_(target.ne(pad).to(gradient)[:, None])
