"""The memory of an update of a fairseq training, measured on tensors without memory.

Tensors of floats are fake, without storage. Token ids, masks and positions are real, because code reads their values.
"""

import weakref
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

VALUE_NEEDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Updates:
    """Updates of a training with Adam.

    Attributes:
        parameters: how many scalars are trained.
        sizes: bytes that stay from one update to the next: `weights`; `gradients`, with the copy in which DDP sums
            them; `optimizer`, the moments of Adam and fairseq's fp32 copies of weights and gradients.
    """

    def __init__(self, cfg: Any, task: Any) -> None:
        common = cfg.common
        if common.amp:
            raise ValueError("hat plan knows --fp16 and --bf16, not --amp: remove it")
        if cfg.optimizer._name != "adam":
            raise ValueError(f"hat plan knows --optimizer adam, not {cfg.optimizer._name}")
        self._memory, half = TensorBytes(), common.fp16 or common.bf16
        dtype = torch.float16 if common.fp16 else torch.bfloat16 if half else torch.float32
        with self._memory.fake, self._memory as memory:
            self.model, self._criterion = task.build_model(cfg.model).train(), task.build_criterion(cfg.criterion)
            module: Any
            for module in self.model.modules():
                if getattr(module, "of_units", False):
                    module.cache = None  # of vectors, which are those of real weights
            memory.device = torch.device("cpu" if common.cpu else "cuda:0")
            for tensor in (*self.model.parameters(), *self.model.buffers()):
                if tensor.is_floating_point():
                    tensor.data, tensor.fake_device = torch.empty(tensor.shape, dtype=dtype), memory.device
        self._trained = [p for p in self.model.parameters() if p.requires_grad]
        self.parameters = sum(p.numel() for p in self._trained)
        copies = half and not (common.memory_efficient_fp16 or common.memory_efficient_bf16)
        processes = cfg.distributed_training.distributed_world_size
        gradients = self.parameters * dtype.itemsize * (2 if processes > 1 else 1)
        optimizer = self.parameters * torch.float32.itemsize * (4 if copies else 2)
        self.sizes = {"weights": memory.live, "gradients": gradients, "optimizer": optimizer}

    def peak(self, sample: dict[str, Any], update_freq: int) -> int:
        """Returns the most bytes in an update of so many batches.

        From the second one on there are gradients already.
        """
        kernels = {} if self._memory.device.type == "cpu" else GPU_KERNELS
        with self._memory.fake, self._memory as memory, patch.dict(vars(F), kernels):
            for parameter in self._trained if update_freq > 1 else ():
                parameter.grad = torch.empty(parameter.shape, dtype=parameter.dtype)
            memory.peak = 0
            self._criterion(self.model, sample)[0].backward()
            self.model.zero_grad()
        own_gradients = sum(parameter.nbytes for parameter in self._trained)
        return memory.peak + self.sizes["optimizer"] + self.sizes["gradients"] - own_gradients


class TensorBytes(TorchDispatchMode):
    """Bytes of tensors in use now (`live`) and at most (`peak`), inside of `fake` and this mode.

    Tensors of floats have no storage, and are on `device`.
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
        # Under a dispatch mode autograd does not sum gradients in place; that temporary does not count.
        if func is not torch.ops.aten.add.Tensor or torch.is_grad_enabled():
            self.peak = max(self.peak, self.live)
        return out

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        on_cpu, on_device = ({"device": name} if "device" in kwargs else {} for name in ("cpu", self.device))
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        with unset_fake_temporarily():
            if not VALUE_NEEDED.isdisjoint(func.tags):  # masks and numbers that are computed from floats count as 0
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


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    mask = None if mask is None else mask.to(q.dtype).expand(*q.shape[:3], k.size(2))
    return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, mask, True, dropout, causal)[0]


def _fused_dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(x, p, training)[0] if training and p else x


#: What torch chooses on a GPU, and cannot choose where there is none.
GPU_KERNELS = {"scaled_dot_product_attention": _fused_attention, "dropout": _fused_dropout}
