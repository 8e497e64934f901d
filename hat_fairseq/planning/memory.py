"""Counts the memory of tensors without allocating it."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

_VALUE_NEEDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Memory(TorchDispatchMode):
    """Bytes of tensors in use now (`live`) and at most (`peak`), inside of `fake` and this mode.

    Tensors of floats have no storage, and are on `device`. All others (token ids, masks, positions) are real, because
    code reads their values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.device, self.fake = torch.device("cpu"), FakeTensorMode()
        self.live, self.peak, self._counted = 0, 0, set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:  # autograd asks for streams, which a missing device does not have
            return torch.device("cpu")
        out = self._run(func, args, kwargs or {})
        tree_map_only(Tensor, self._count, out)
        # The engine sums gradients in place, but not below a mode: the next operator sees what it really keeps.
        if func is not torch.ops.aten.add.Tensor or torch.is_grad_enabled():
            self.peak = max(self.peak, self.live)
        return out

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        on_cpu, on_device = ({"device": name} if "device" in kwargs else {} for name in ("cpu", self.device))
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        with unset_fake_temporarily():
            if not _VALUE_NEEDED.isdisjoint(func.tags):  # masks and numbers that are computed from floats count as 0
                return func(*tree_map_only(FakeTensor, lambda x: torch.zeros(x.shape, dtype=x.dtype), args), **kwargs)
            if tensors and not any(isinstance(x, FakeTensor) for x in tensors):
                return func(*args, **kwargs | on_cpu)
            fake_args, fake_kwargs = tree_map_only(Tensor, self._without_storage, (args, kwargs))
        out = func(*fake_args, **fake_kwargs | on_device)
        if tensors or not isinstance(out, Tensor) or out.is_floating_point():
            return out
        with unset_fake_temporarily():
            return func(*args, **kwargs | on_cpu)

    def _without_storage(self, x: Tensor) -> Tensor:
        return x if isinstance(x, FakeTensor) else FakeTensor(self.fake, x.to("meta"), self.device)

    def _count(self, x: Tensor) -> None:
        storage = x.untyped_storage()
        if (key := storage._cdata) not in self._counted:
            self._counted.add(key)
            self.live += storage.nbytes()
            weakref.finalize(storage, self._release, key, storage.nbytes()).atexit = False

    def _release(self, key: int, size: int) -> None:
        self._counted.discard(key)
        self.live -= size
