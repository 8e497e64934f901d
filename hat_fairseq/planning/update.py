"""Simulates one update with the model, criterion and optimizer of a training, on tensors without storage."""

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from fairseq import optim
from torch import nn

from .ledger import Ledger, gpu_kernels
from .training import Training


@dataclass
class Estimate:
    """Bytes of an update."""

    parameters: int = 0  # their number
    weights: int = 0
    gradients: int = 0  # with DDP's copy
    optimizer: int = 0  # with fp32 copies of weights and gradients
    layers: dict[str, tuple[int, int]] = field(default_factory=dict)  # of each stack: number, and what all of them keep
    activations: int = 0  # what the whole model keeps for the backward pass
    loss: int = 0  # what the criterion needs in addition, for a moment
    peak: int = 0
    peak_in: str = ""  # the part of the update with the peak


class Simulation:
    """Updates of a training, whose model is on the meta device."""

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
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        kept.parameters, kept.weights = sum(p.numel() for p in self._parameters), ledger.live
        ddp = self.training.cfg.distributed_training.distributed_world_size > 1
        self._buckets = ledger.empty(kept.parameters * ddp, self.dtype)  # DDP sums gradients in them
        self._optimizer = self._build_optimizer(self._parameters)
        for _ in range(2):  # Adam makes its moments in the first step
            self._optimizer.zero_grad()
            kept.optimizer = ledger.live - kept.weights - self._buckets.nbytes
            self._make_gradients()
            kept.gradients = ledger.live - kept.weights - kept.optimizer
            self._optimizer.step()
        self._note_peak(kept, "step of the optimizer")
        self._optimizer.zero_grad()
        self._watch(model)

    def _make_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.grad = self.ledger.empty(parameter.shape, parameter.dtype)

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

    def _watch(self, model: nn.Module) -> None:
        """Notes what the layers and the model keep, in every forward pass until `activations` are known."""
        entered: dict[nn.Module, int] = {}

        def enter(layer: nn.Module, _: Any) -> None:
            entered[layer] = self.ledger.live

        def leave(name: str, layer: nn.Module) -> None:
            if not self._result.activations:  # not when the backward pass recomputes the layer
                number, kept = self._result.layers.get(name, (0, 0))
                self._result.layers[name] = number + 1, kept + self.ledger.live - entered[layer]

        def finish(*_: Any) -> None:
            self._result.activations = self._result.activations or self.ledger.live - entered[model]
            self._note_peak(self._result, "forward pass")

        for name, stack in model.named_modules():
            for layer in stack if isinstance(stack, nn.ModuleList) else ():
                layer.register_forward_pre_hook(enter)
                layer.register_forward_hook(lambda layer, *_, name=name: leave(name, layer))
        model.register_forward_pre_hook(enter)
        model.register_forward_hook(finish)

    def _note_peak(self, result: Estimate, part: str) -> int:
        """The most that was in memory since the last call; the next one starts from what is in memory now."""
        peak, self.ledger.peak = self.ledger.peak, self.ledger.live
        result.peak, result.peak_in = max((result.peak, result.peak_in), (peak, part), key=lambda each: each[0])
        return peak

    def estimate(self, sample: dict[str, Any], update_freq: int = 1) -> Estimate:
        """The memory of an update on this batch; with `update_freq` above 1 beside the gradients of another one."""
        training, ledger, self._result = self.training, self.ledger, replace(self._kept, layers={})
        with ledger, gpu_kernels() if self.device == "cuda" else contextlib.nullcontext():
            if update_freq > 1:
                self._make_gradients()
            before = ledger.live
            loss, _, log = training.criterion(training.model, sample)
            self._result.loss = self._note_peak(self._result, "loss") - before - self._result.activations
            self._optimizer.backward(loss)
            self._note_peak(self._result, "backward pass")
            self._optimizer.zero_grad()
        return self._result
