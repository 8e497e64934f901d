"""Counts the memory that a computation would allocate, without allocating it.

Tensors of floats have a shape, a type and a device, but no storage (torch's `FakeTensor`). All others (token ids, masks
and positions) are real, because code reads their values, and small. A storage counts from the operator that makes it
until its last tensor is deleted. Operators run on the meta device (`FakeTensor.real_tensor`), which is faster than
`FakeTensorMode`.
"""

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

_INDEXED = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
_VALUE_NEEDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Ledger(TorchDispatchMode):
    """Bytes in use now (`live`) and at most (`peak`), of all that happens inside of it; `device`: `cpu` or `cuda`."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = torch.device("cuda:0" if device == "cuda" else device)
        self.live, self.peak, self._fake, self._counted = 0, 0, FakeTensorMode(), set[int]()

    def __enter__(self) -> "Ledger":
        self._fake.__enter__()  # below this mode, which leaves it nothing to do: torch looks for no GPU then
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
        for tensors in (each for module in model.modules() for each in (module._parameters, module._buffers)):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = known[tensor] = known[tensor] if tensor in known else self._own(tensor, dtype)

    def _own(self, tensor: Tensor, dtype: torch.dtype) -> Any:
        own = self.empty(tensor.shape, dtype if tensor.is_floating_point() else tensor.dtype)
        return nn.Parameter(own) if isinstance(tensor, nn.Parameter) else own

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:  # autograd asks for streams, which a missing device does not have
            return torch.device("cpu")
        with unset_fake_temporarily():
            out = self._run(func, args, kwargs or {})
        # The engine sums gradients in place, but not below a mode: the next operator sees what it really keeps.
        if func is not torch.ops.aten.add.Tensor or torch.is_grad_enabled():
            self.peak = max(self.peak, self.live)
        return out

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given: dict[int, Tensor] = {}  # by the id of its counterpart
        strided = "softmax" not in func._schema.name  # torch's rules for a softmax would copy other strides on the GPU

        def counterpart(x: Tensor) -> Tensor:
            meta: Any = x.real_tensor if isinstance(x, FakeTensor) else x.to("meta")
            meta = meta if strided else meta.contiguous()
            given[id(meta)] = x
            return meta

        def wrapped(x: Tensor) -> Tensor:
            found = given.get(id(x))
            return FakeTensor(self._fake, self._count(x), self.device, real_tensor=x) if found is None else found

        if func._schema.name in _INDEXED:
            args = (args[0], _positions(args[1]), *args[2:])
        elif not _VALUE_NEEDED.isdisjoint(func.tags):  # a number for a decision or a log: any value will do
            return _each(self._count, func(*_each(_zeros, args), **kwargs))
        meta_args, meta_kwargs = _each(counterpart, (args, kwargs))
        on_cpu, on_meta = ({"device": name} if "device" in kwargs else {} for name in ("cpu", "meta"))
        if not given or any(isinstance(x, FakeTensor) for x in given.values()):
            out = func(*meta_args, **meta_kwargs | on_meta)
            if given or not isinstance(out, Tensor) or out.is_floating_point():
                return _each(wrapped, out)
        return _each(self._count, func(*args, **kwargs | on_cpu))

    def _count(self, x: Tensor) -> Tensor:
        if (key := (storage := x.untyped_storage())._cdata) not in self._counted:
            self._counted.add(key)
            self.live += storage.nbytes()
            weakref.finalize(storage, self._release, key, storage.nbytes()).atexit = False
        return x

    def _release(self, key: int, size: int) -> None:
        self._counted.discard(key)
        self.live -= size


def _each(function: Callable[[Tensor], Any], x: Any) -> Any:
    """`x` with `function` applied to every tensor in it."""
    if isinstance(x, Tensor):
        return function(x)
    if isinstance(x, list | tuple):
        return type(x)([_each(function, value) for value in x])
    return {name: _each(function, value) for name, value in x.items()} if isinstance(x, dict) else x


def _zeros(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=x.dtype) if isinstance(x, FakeTensor) else x


def _positions(indices: Any) -> list[Any]:
    """Indices with every mask replaced by the positions where it is True; a computed mask counts as False."""
    is_mask = [isinstance(x, Tensor) and x.dtype is torch.bool for x in indices]
    groups = (_zeros(x).nonzero().unbind(1) if mask else (x,) for x, mask in zip(indices, is_mask, strict=True))
    return list(itertools.chain.from_iterable(groups))


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
