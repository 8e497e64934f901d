#!/usr/bin/env python3
"""How fast are sliding windows on a GPU, beside FlexAttention and varlen attention?

    python benchmarks/gpu_windows.py --out windows.json                                            # on one GPU
    python benchmarks/gpu_windows.py --threads 1 --settings 0 --set length=512 --out windows.json      # anywhere

Each query attends to `window` keys on either side, in documents without padding. *Ours* is the kernel of
`--encoder-attention window` (`kernels.attend_windows`), *flex* is torch's FlexAttention, compiled, with a block mask of
the same window, *varlen* torch's attention to packed documents with a window. On a GPU all are in bfloat16, forward and
backward; outputs and gradients are compared. On a CPU FlexAttention has no backward pass and varlen attention does not
exist, so there the two others compute outputs in fp32. Memory is what a call needs at most beside its inputs.
"""

from collections.abc import Callable

import torch
from harness import Facts, Job, Setting, dtype, forget_peak, peak_memory, run, where
from torch import Tensor

from hat_fairseq.kernels import Windows, attend_windows, prepare_mask

ON_GPU = where() == "cuda"
CONTENDERS = ["ours", "flex", *["varlen"] * ON_GPU]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
SAMPLED, ALLOWED = 997, 2e-2 if ON_GPU else 1e-5  # every so many numbers; a difference relative to the largest


def setting(batch: int, length: int, window: int) -> Setting:
    name = "{batch} documents of {length:,} tokens, windows of {window}"
    sizes = {"batch": batch, "length": length, "window": window, "heads": 12, "width": 64}
    return {"name": name, "contenders": CONTENDERS, **sizes}


SETTINGS = [setting(1, 16384, 128), setting(4, 4096, 128), setting(1, 16384, 512), setting(1, 65536, 128)]


def sliding(chosen: Setting) -> Attend:
    """The kernel with the blocks of `SlidingWindowAttention`."""
    window, length = chosen["window"], chosen["length"]
    block = min(128, max(32, window))
    windows = Windows(block, block, window, block + 2 * window)
    queries, keys = windows.positions(length, length, torch.device(where()))
    near = ((queries - keys).abs() <= window) & (keys >= 0) & (keys < length) | (queries == keys)
    mask = prepare_mask(near.repeat(chosen["batch"], 1, 1).unsqueeze(1), dtype())
    return lambda queries, keys, values: attend_windows(queries, keys, values, mask, windows)


def flex(chosen: Setting) -> Attend:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def near(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= chosen["window"]

    mask = create_block_mask(near, None, None, chosen["length"], chosen["length"], device=where())
    compiled = torch.compile(flex_attention)
    return lambda queries, keys, values: compiled(queries, keys, values, block_mask=mask)


def varlen(chosen: Setting) -> Attend:
    from torch.nn.attention.varlen import varlen_attn

    batch, length, window = chosen["batch"], chosen["length"], chosen["window"]
    ends = torch.arange(batch + 1, device=where(), dtype=torch.int32) * length

    def attend(*states: Tensor) -> Tensor:
        packed = (x.transpose(1, 2).flatten(0, 1) for x in states)
        out = varlen_attn(*packed, ends, ends, length, length, window_size=(window, window))
        assert isinstance(out, Tensor)
        return out.unflatten(0, (batch, length)).transpose(1, 2)

    return attend


KERNELS: dict[str, Callable[[Setting], Attend]] = {"ours": sliding, "flex": flex, "varlen": varlen}


def build(name: str, chosen: Setting) -> Job:
    """One forward pass, on a GPU with its backward pass."""
    shape = chosen["batch"], chosen["length"], chosen["heads"], chosen["width"]
    generator = torch.Generator(where()).manual_seed(1)
    drawn = [torch.randn(shape, generator=generator, device=where(), dtype=dtype()) for _ in range(4)]
    *inputs, upstream = (x.transpose(1, 2) for x in drawn)  # as projections give them
    leaves, attend, last = [x.requires_grad_(ON_GPU) for x in inputs], KERNELS[name](chosen), list[Tensor]()

    def step() -> Facts:
        out = attend(*leaves)
        last[:] = [out, *(torch.autograd.grad(out, leaves, upstream) if ON_GPU else ())]
        return {"tokens": chosen["batch"] * chosen["length"]}

    step()  # compiles
    last.clear()
    forget_peak()
    before = peak_memory()

    def finish() -> Facts:
        above = peak_memory() - before
        return {"bytes_above_inputs": above, "_states": [x.detach().flatten()[::SAMPLED].tolist() for x in last]}

    return Job(step, {}, finish)


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    told = [f"{name}: {end['bytes_above_inputs'] / 1e9:.2f} GB beside the inputs" for name, end in ends.items()]
    for name, end in ends.items():
        for expected, actual in zip(ends["ours"]["_states"], end["_states"], strict=True):
            one, other = torch.tensor(expected), torch.tensor(actual)
            if (error := float((one - other).abs().max() / one.abs().max())) > ALLOWED:
                raise SystemExit(f"{chosen['name']}: {name} differs from ours by {error:.1e}")
    compared = "outputs and gradients" if ON_GPU else "outputs (on a CPU no gradients, and no varlen attention)"
    return [*told, f"the same {compared}"]


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="ours", rounds=9)
