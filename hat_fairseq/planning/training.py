"""A fairseq-train command without data: its task, a batch of the longest documents, and the memory of an update."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from fairseq import optim, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch import Tensor

from ..data.kinds import KINDS, LabelledKind
from ..register import register
from .memory import Memory

MASKED = 7  # of so many tokens one is masked, about 15 %
NAMES, SPECIAL = 4, 4  # roles or labels; symbols that fairseq adds to every dictionary


def set_up(words: list[str], dictionary_size: int | None) -> tuple[Any, Any, Any]:
    """The configuration, the task and its kind of data; without a size the data's dictionaries are read."""
    register()
    with tempfile.TemporaryDirectory() as folder:
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
        streams = [getattr(args, name, None) for name in ("source_lang", "target_lang", "role_stream")]
        paths = ["dict.txt", "input0/dict.txt", "label/dict.txt", *(f"dict.{stream}.txt" for stream in streams)]
        if dictionary_size is not None:
            args.data = folder
            for path in paths:
                symbols = range(NAMES if path in (paths[2], paths[-1]) else dictionary_size - SPECIAL)
                Path(folder, path).parent.mkdir(exist_ok=True)
                Path(folder, path).write_text("".join(f"{number} 1\n" for number in symbols), encoding="utf-8")
        cfg = convert_namespace_to_omegaconf(args)
        task: Any = tasks.setup_task(cfg.task)
    return cfg, task, getattr(task, "kind", None) or next(k for k in KINDS.values() if k.task == cfg.task._name)


def batch(task: Any, kind: Any, documents: int, source: int, target: int, marker_every: int) -> dict[str, Any]:
    """A batch as the task collates it, without padding, of documents (or questions with all their choices).

    Each has `source` tokens, a marker of a sentence or segment before every `marker_every` of them, and `target` tokens
    if texts are the targets.
    """
    dictionary = task.source_dictionary
    rows_of_sample = kind.rows_of_sample if isinstance(kind, LabelledKind) else 1
    rows = documents * rows_of_sample
    tokens = torch.full((rows, source), dictionary.nspecial)
    tokens[:, ::marker_every], tokens[:, -1] = dictionary.bos(), dictionary.eos()
    inputs = {"src_tokens": tokens, "src_lengths": torch.full((rows,), source)}
    if isinstance(kind, LabelledKind):
        tokens[:, 1] = dictionary.eos()  # behind a question
        gold = torch.tensor([kind.no_target(source, int(tokens[0].eq(dictionary.bos()).sum()))] * documents)
    elif kind.has_target:
        gold = inputs["prev_output_tokens"] = torch.full((rows, target), dictionary.nspecial)
        if task.role_dictionary is not None:
            inputs["roles"] = torch.full_like(tokens, task.role_dictionary.nspecial)
    else:
        gold = tokens.masked_fill(torch.arange(source) % MASKED != 1, dictionary.pad())
    numbers = {"nsentences": documents, "ntokens": gold.numel() if kind.has_target else tokens.numel()}
    return {"net_input": inputs, "target": gold, "num_rows": torch.full((documents,), rows_of_sample), **numbers}


class Updates:
    """Model, criterion and optimizer as fairseq's trainer has them; `sizes`: the bytes that they keep."""

    def __init__(self, cfg: Any, task: Any) -> None:
        common, self._memory = cfg.common, Memory()
        if common.amp:
            raise ValueError("hat plan knows --fp16 and --bf16, not --amp: remove it")
        self._dtype = torch.float16 if common.fp16 else torch.bfloat16 if common.bf16 else torch.float32
        with self._memory.fake, self._memory as memory:
            self.model, self._criterion = task.build_model(cfg.model).train(), task.build_criterion(cfg.criterion)
            memory.device = torch.device("cpu" if common.cpu else "cuda:0")
            for tensor in (*self.model.parameters(), *self.model.buffers()):
                if tensor.is_floating_point():
                    tensor.data, tensor.fake_device = torch.empty(tensor.shape, dtype=self._dtype), memory.device
            self._parameters = [p for p in self.model.parameters() if p.requires_grad]
            self.parameters, weights = sum(p.numel() for p in self._parameters), memory.live
            processes = cfg.distributed_training.distributed_world_size
            self._buckets = torch.empty(self.parameters * (processes > 1), dtype=self._dtype)  # DDP's copy of gradients
            self._optimizer, memory.peak = self._build_optimizer(cfg), 0
            for _ in range(2):  # Adam makes its moments in the first step
                self._optimizer.zero_grad()
                optimizer = memory.live - weights - self._buckets.nbytes
                self._make_gradients()
                gradients = memory.live - weights - optimizer
                self._optimizer.step()
            self._optimizer.zero_grad()
        self.sizes = {"weights": weights, "gradients": gradients, "optimizer": optimizer}
        self._peak_of_step = memory.peak

    def _build_optimizer(self, cfg: Any) -> Any:
        cfg.common.fp16_no_flatten_grads = True  # fairseq asks the GPU where to put a flat copy
        if self._dtype is torch.float32:
            return optim.build_optimizer(cfg.optimizer, self._parameters)
        efficient = cfg.common.memory_efficient_fp16 or cfg.common.memory_efficient_bf16
        half = optim.MemoryEfficientFP16Optimizer if efficient else optim.FP16Optimizer
        return half.build_optimizer(cfg, self._parameters)

    def _make_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.grad = torch.empty(parameter.shape, dtype=parameter.dtype)

    def peak(self, sample: dict[str, Any], update_freq: int) -> int:
        """The most bytes in an update of so many batches; from the second one on there are gradients already."""
        kernels = contextlib.nullcontext() if self._memory.device.type == "cpu" else patch.dict(vars(F), GPU_KERNELS)
        with self._memory.fake, self._memory as memory, kernels:
            if update_freq > 1:
                self._make_gradients()
            memory.peak = 0
            self._optimizer.backward(self._criterion(self.model, sample)[0])
            self._optimizer.zero_grad()
        return max(memory.peak, self._peak_of_step)


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    mask = None if mask is None else mask.to(q.dtype).expand(*q.shape[:3], k.size(2))
    return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, mask, True, dropout, causal)[0]


def _fused_dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(x, p, training)[0] if training and p else x


#: What torch chooses on a GPU, and cannot choose where there is none.
GPU_KERNELS = {"scaled_dot_product_attention": _fused_attention, "dropout": _fused_dropout}
