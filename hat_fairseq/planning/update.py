"""One update with the real model, criterion and optimizer of a training, on tensors without memory."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from fairseq import optim
from torch import nn

from .ledger import Ledger, gpu_kernels
from .training import Training


@dataclass
class Estimate:
    """Bytes of an update.

    Attributes:
        weights, gradients, optimizer: the gradients with DDP's copy; the optimizer with fp32 copies of both.
        layers: of each stack of layers their number, and what all of them keep for the backward pass.
        activations: what the whole model keeps for the backward pass.
        loss: what the criterion needs in addition, for a moment.
        peak: the most that is in memory at one time, and in which part of the update.
    """

    parameters: int = 0
    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    activations: int = 0
    loss: int = 0
    peak: int = 0
    peak_in: str = ""


class Simulation:
    """Updates of a training.

    Args:
        training: with its model on the meta device.
    """

    def __init__(self, training: Training) -> None:
        self.training, common = training, training.cfg.common
        if common.amp:
            raise ValueError("hat plan knows --fp16 and --bf16, not --amp: remove it")
        self.device = "cpu" if common.cpu else "cuda"
        self.dtype = torch.float16 if common.fp16 else torch.bfloat16 if common.bf16 else torch.float32
        self.ledger, self._kept = Ledger(self.device), Estimate()
        with self.ledger:
            self._set_up(training.model.train())

    def _set_up(self, model: Any) -> None:
        """Gives model and optimizer what they keep from update to update, and notes it."""
        ledger, kept = self.ledger, self._kept
        ledger.adopt(model, self.dtype)
        parameters = [p for p in model.parameters() if p.requires_grad]
        kept.parameters, kept.weights = sum(p.numel() for p in parameters), ledger.live
        several = self.training.cfg.distributed_training.distributed_world_size > 1
        self._buckets = ledger.empty(kept.parameters if several else 0, self.dtype)  # DDP sums gradients in them
        self._optimizer = self._build_optimizer(parameters)
        for _ in range(2):  # Adam makes its moments in the first step
            self._optimizer.zero_grad()
            kept.optimizer = ledger.live - kept.weights - self._buckets.nbytes
            for parameter in parameters:
                parameter.grad = ledger.empty(parameter.shape, parameter.dtype)
            kept.gradients = ledger.live - kept.weights - kept.optimizer
            self._optimizer.step()
        _note_peak(ledger, kept, "step of the optimizer")
        self._optimizer.zero_grad()

    def _build_optimizer(self, parameters: list[Any]) -> Any:
        """The optimizer as fairseq's trainer builds it."""
        cfg = self.training.cfg
        if self.dtype is torch.float32:
            return optim.build_optimizer(cfg.optimizer, parameters)
        if cfg.common.memory_efficient_fp16 or cfg.common.memory_efficient_bf16:
            return optim.MemoryEfficientFP16Optimizer.build_optimizer(cfg, parameters)
        if cfg.common.bf16 or cfg.common.fp16_no_flatten_grads:
            return optim.FP16Optimizer.build_optimizer(cfg, parameters)
        flat = nn.Parameter(self.ledger.empty(self._kept.parameters, torch.float32))  # fairseq's own code asks the GPU
        flat.grad = self.ledger.empty(flat.shape, torch.float32)
        optimizer = optim.build_optimizer(cfg.optimizer, [flat])
        return optim.FP16Optimizer(cfg, parameters, optimizer, {parameters[0].device.index: flat})

    def estimate(self, sample: dict[str, Any], update_freq: int = 1) -> Estimate:
        """The memory of an update on this batch; with `update_freq` above 1 also beside the gradients of another."""
        training, ledger, result = self.training, self.ledger, replace(self._kept, layers={})
        with ledger, gpu_kernels() if self.device == "cuda" else contextlib.nullcontext():
            with _watched(training.model, ledger, result):
                for _ in range(min(2, update_freq)):
                    before = ledger.live
                    loss, _, log = training.criterion(training.model, sample)
                    result.loss = _note_peak(ledger, result, "loss") - before - result.activations
                    self._optimizer.backward(loss)
                    _note_peak(ledger, result, "backward pass")
                    del loss, log
            self._optimizer.zero_grad()
        return result


def _note_peak(ledger: Ledger, result: Estimate, part: str) -> int:
    """The most that was in memory since the last call; the next one starts from what is in memory now."""
    peak, ledger.peak = ledger.peak, ledger.live
    if peak > result.peak:
        result.peak, result.peak_in = peak, part
    return peak


@contextlib.contextmanager
def _watched(model: nn.Module, ledger: Ledger, result: Estimate) -> Iterator[None]:
    """Notes what the layers and the model keep in the first forward pass."""
    before, entered = ledger.live, dict[nn.Module, int]()

    def enter(layer: nn.Module, _: Any) -> None:
        entered[layer] = ledger.live

    def leave(name: str, layer: nn.Module) -> None:
        if not result.activations:  # not when the backward pass recomputes the layer
            number, kept = result.layers.get(name, (0, 0))
            result.layers[name] = number + 1, kept + ledger.live - entered[layer]

    def finish(*_: Any) -> None:
        result.activations = result.activations or ledger.live - before
        _note_peak(ledger, result, "forward pass")

    handles = [model.register_forward_hook(finish)]
    for name, stack in model.named_modules():
        for layer in stack if isinstance(stack, nn.ModuleList) else ():
            handles.append(layer.register_forward_pre_hook(enter))
            handles.append(layer.register_forward_hook(lambda layer, *_, name=name: leave(name, layer)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
