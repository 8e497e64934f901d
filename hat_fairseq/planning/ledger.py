"""Counts the memory that a computation would allocate, without allocating it.

Tensors of floats have a shape, a type and a device, and no memory (torch's `FakeTensor`). All others (token ids, masks,
positions) are real and small, so that code that reads their values runs as it is. A storage counts from the operator
that makes it until its last tensor is gone.
"""

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

_INDEXED = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


class Ledger(TorchDispatchMode):
    """Bytes in use now (`live`) and at most (`peak`), of all that happens inside of it.

    Args:
        device: `cpu` or `cuda`; it need not exist.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.live, self.peak = device, 0, 0
        self._fake, self._counted = FakeTensorMode(), set[int]()

    def __enter__(self) -> "Ledger":
        self._fake.__enter__()  # below this mode; torch looks for no GPU then
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._fake.__exit__(*error)

    def empty(self, shape: Any, dtype: torch.dtype) -> Tensor:
        """A tensor without memory."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    def adopt(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Replaces the parameters and buffers of a model on the meta device; shared ones stay shared."""
        known: dict[Any, Any] = {}
        for module in model.modules():
            for tensors in (module._parameters, module._buffers):
                for name, tensor in tensors.items():
                    if tensor is not None and tensor not in known:
                        own = self.empty(tensor.shape, dtype if tensor.is_floating_point() else tensor.dtype)
                        known[tensor] = nn.Parameter(own) if isinstance(tensor, nn.Parameter) else own
                    if tensor is not None:
                        tensors[name] = known[tensor]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:  # autograd asks for streams, which a missing device does not have
            return torch.device("cpu")
        out = tree_map(self._count, self._run(func, args, kwargs or {}))
        # The engine sums gradients in place, but not below a mode: the next operator sees what it really keeps.
        if func is not torch.ops.aten.add.Tensor or torch.is_grad_enabled():
            self.peak = max(self.peak, self.live)
        return out

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if func._schema.name in _INDEXED:
            args = (args[0], _positions(args[1]), *args[2:])
        leaves, spec = tree_flatten((args, kwargs))
        if not any(isinstance(x, Tensor) for x in leaves):
            made = func(*args, **kwargs)
            if not isinstance(made, Tensor) or made.is_floating_point():
                return made
        if not any(isinstance(x, FakeTensor) for x in leaves):
            with unset_fake_temporarily():
                return func(*args, **({**kwargs, "device": "cpu"} if "device" in kwargs else kwargs))
        fake_args, fake_kwargs = tree_unflatten([self._without_memory(x, func) for x in leaves], spec)
        if "device" in kwargs:  # where it is the answer to `prim.device` above
            fake_kwargs["device"] = self.device
        try:
            return func(*fake_args, **fake_kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            args, kwargs = tree_unflatten([_zeros(x) for x in leaves], spec)
            with unset_fake_temporarily():  # a number for a decision or a log: any value will do
                return func(*args, **kwargs)

    def _without_memory(self, x: Any, func: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if isinstance(x, FakeTensor):  # torch's rules for a softmax would copy other strides on the GPU
            return self.empty(x.shape, x.dtype) if "softmax" in func._schema.name and not x.is_contiguous() else x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=self.device)

    def _count(self, x: Any) -> Any:
        if isinstance(x, Tensor) and (key := (storage := x.untyped_storage())._cdata) not in self._counted:
            self._counted.add(key)
            self.live += storage.nbytes()
            weakref.finalize(storage, self._release, key, storage.nbytes()).atexit = False
        return x

    def _release(self, key: int, size: int) -> None:
        self._counted.discard(key)
        self.live -= size


def _zeros(x: Any) -> Any:
    with unset_fake_temporarily():
        return torch.zeros(x.shape, dtype=x.dtype) if isinstance(x, FakeTensor) else x


def _positions(indices: Any) -> list[Any]:
    """Indices with every mask replaced by the positions where it is True; a computed mask counts as False."""
    masks = [isinstance(x, Tensor) and x.dtype is torch.bool for x in indices]
    with unset_fake_temporarily():
        groups = [_zeros(x).nonzero().unbind(1) if is_mask else (x,) for x, is_mask in zip(indices, masks, strict=True)]
    return [x for group in groups for x in group]


@contextlib.contextmanager
def gpu_kernels() -> Iterator[None]:
    """Fused attention and fused dropout, which torch chooses on a GPU and cannot choose where there is none.

    A `TorchFunctionMode` would not be in force where the backward pass recomputes a layer.
    """
    kept = F.scaled_dot_product_attention, F.dropout
    F.scaled_dot_product_attention, F.dropout = _fused_attention, _fused_dropout  # type: ignore[assignment]
    try:
        yield
    finally:
        F.scaled_dot_product_attention, F.dropout = kept  # type: ignore[assignment]


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    mask = None if mask is None else mask.to(q.dtype).expand(*q.shape[:3], k.size(2))
    return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, mask, True, dropout, causal)[0]


def _fused_dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(x, p, training)[0] if training and p else x
