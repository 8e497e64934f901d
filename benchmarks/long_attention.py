#!/usr/bin/env python3
"""What does attention over a long document cost? Ours beside LED, LSG, BigBird and full attention.

    python benchmarks/long_attention.py --threads 2

`core` is the attention between given queries, keys and values, 12 heads of 64; `layer` is an encoder layer of 768/3072
with its projections and feed-forward network, forward and backward. All without padding, global tokens and dropout. Two
levels see 512 tokens on either side, as LED with its window of 1,024 does; the sliding window sees 128, as LSG's local
attention with blocks of 128 does at least. `block-sparse` and BigBird of `transformers` see the same blocks. LSG (`pip
install --no-deps lsg-converter`) is the attention of its package alone, because its models do not work with
transformers 5. FlexAttention is compiled and has no backward pass on a CPU. bfloat16 on a GPU, fp32 on the CPU.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import Facts, Job, Setting, dtype, run, where
from torch import Tensor, nn

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.block_sparse import BlockSparseAttention
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.pooling_attention import PoolingAttention, SecondLevel
from hat_fairseq.modules.sliding_window import SlidingWindowAttention

OURS = {
    "two levels": partial(PoolingAttention, level=SecondLevel(cells="token")),
    "window": SlidingWindowAttention,
    "block-sparse": BlockSparseAttention,
    "full": FullAttention,
}
WIDTH, HEADS, WINDOW, WIDE = 768, 12, 128, 512
LONG = ["two levels", "window", "block-sparse", "led", "bigbird", "lsg"]
CORE, LAYER = [*LONG, "full"], ["two levels", "window", "block-sparse", "full", "led"]
SETTINGS = [
    {"name": "core, forward, {length:,} tokens", "part": "core", "backward": False, "length": n, "contenders": who}
    for n, who in (
        (1024, [*CORE, "flex"]),
        (4096, [*CORE, "flex"]),
        (16384, [*LONG, "flex"]),
    )
]
SETTINGS += [
    {"name": "core, both passes, {length:,} tokens", "part": "core", "backward": True, "length": n, "contenders": who}
    for n, who in ((1024, CORE), (4096, CORE), (16384, LONG))
]
SETTINGS += [
    {"name": "layer, both passes, {length:,} tokens", "part": "layer", "backward": True, "length": n, "contenders": who}
    for n, who in ((1024, LAYER), (4096, LAYER), (16384, ["two levels", "window", "block-sparse", "led"]))
]


class Identity(nn.Identity):
    """In place of a projection of ours."""

    cache_dtype = None


class Copy(nn.Module):
    """A projection that costs next to nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clone()


def main() -> None:
    run(
        "long_attention",
        __doc__ or "",
        job,
        contenders=[*CORE, "flex"],
        settings=SETTINGS,
        reference="two levels",
        check=check,
        versions=["transformers", "lsg-converter"],
    )


def job(name: str, setting: Setting) -> Job:
    """One pass, or both."""
    function = core(name) if setting["part"] == "core" else layer(name)
    x = torch.randn(1, setting["length"], WIDTH, device=where(), dtype=dtype(), requires_grad=setting["backward"])
    weights = torch.randn_like(x)
    last: dict[str, Tensor] = {}

    def step() -> Facts:
        with torch.set_grad_enabled(setting["backward"]):
            out = function(x)
        if setting["backward"]:
            out.backward(weights)
        last["out"] = out.detach()
        return {"tokens": setting["length"]}

    return Job(step, {}, lambda: {"shape": list(last["out"].shape), "finite": bool(last["out"].isfinite().all())})


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """The same shape from all; that ours are right is a matter of the tests."""
    shape = [1, setting["length"], WIDTH]
    if wrong := [name for name, end in ends.items() if end["shape"] != shape or not end["finite"]]:
        raise SystemExit(f"{setting['name']}: {', '.join(wrong)} did not compute finite states of {shape}")
    return ["finite states of the same shape from all"]


def core(name: str) -> Callable[[Tensor], Tensor]:
    """From (1, T, C), which serves as queries, keys and values, to (1, T, C)."""
    if name in OURS:
        attention: Any = OURS[name](WIDTH, HEADS)
        for module in (attention, getattr(attention, "pooled", attention)):
            module.q_proj, module.k_proj, module.v_proj = Identity(), Identity(), Identity()
        attention.out_proj = Identity()
        attention, layout = attention.to(where(), dtype()), BatchLayout()  # masks serve all layers of a batch
        return lambda x: attention(x, layout)
    if name == "led":
        attention = led("LEDEncoderSelfAttention", 0)
        attention.key = attention.value = nn.Identity()
        attention.query = Copy()  # LED divides the queries in place
        return lambda x: attention(x, **no_padding(x))[0]
    if name == "bigbird":
        return big_bird()
    if name == "flex":
        return flex_window()
    lsg = lsg_attention()
    return lambda x: lsg(*[x.unflatten(-1, (HEADS, -1)).transpose(1, 2)] * 3).transpose(1, 2).flatten(2)


def layer(name: str) -> Callable[[Tensor], Tensor]:
    """A layer of ours with one of the attentions, or LED's."""
    if name == "led":
        theirs = led("LEDEncoderLayer", 0).to(where(), dtype())
        return lambda x: theirs(x, **no_padding(x))[0]
    sizes = LayerSizes(WIDTH, 4 * WIDTH, HEADS, dropout=0.0, activation="gelu")
    ours = EncoderLayer(sizes, OURS[name](WIDTH, HEADS, 0.0)).to(where(), dtype())
    layout = BatchLayout()
    return lambda x: ours(x, layout)


def led(part: str, layer_id: int) -> Any:
    """A part of LED's encoder in `transformers` that sees as far as two levels."""
    from transformers import LEDConfig
    from transformers.models.led import modeling_led

    config = LEDConfig(
        d_model=WIDTH,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH,
        encoder_layers=1,
        attention_window=[2 * WIDE],
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    return getattr(modeling_led, part)(config, layer_id)


def big_bird() -> Callable[[Tensor], Tensor]:
    """BigBird's attention of `transformers`, with blocks of 64 and 3 random ones, drawn as in training."""
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel

    config = BigBirdConfig(hidden_size=WIDTH, num_attention_heads=HEADS, attention_probs_dropout_prob=0.0)
    attention = BigBirdBlockSparseAttention(config, seed=0).train()
    attention.query = attention.key = attention.value = nn.Identity()
    masks: dict[int, Any] = {}

    def attend(x: Tensor) -> Tensor:
        if x.size(1) not in masks:
            made = BigBirdModel.create_masks_for_block_sparse_attn(x.new_ones(x.shape[:2]), 64)
            names = ("from_blocked_mask", "band_mask", "from_mask", "to_mask")
            masks[x.size(1)] = {**dict(zip(names, made, strict=True)), "to_blocked_mask": made[0]}
        return attention(x, **masks[x.size(1)])[0]

    return attend


def no_padding(x: Tensor) -> dict[str, Any]:
    """LED's arguments for documents without padding and global tokens."""
    none = x.new_zeros(x.shape[:2], dtype=torch.bool)
    return {
        "attention_mask": x.new_zeros(x.shape[:2]),
        "is_index_masked": none,
        "is_index_global_attn": none,
        "is_global_attn": False,
    }


def lsg_attention() -> Any:
    """LSG's local attention in blocks, from the one file of its package that needs torch only."""
    found = importlib.util.find_spec("lsg_converter")
    if found is None or found.origin is None:
        raise SystemExit("LSG is missing: pip install --no-deps lsg-converter, or choose other --contenders")
    path = Path(found.origin).parent / "attention_layers/lsg_self_attention.py"
    spec = importlib.util.spec_from_file_location("lsg_self_attention", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BlockLocalSelfAttention(block_size=WINDOW, compute_global_attention=False, attention_dropout_prob=0.0)


def flex_window() -> Callable[[Tensor], Tensor]:
    """The sliding window by compiled FlexAttention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = torch.compile(flex_attention)
    masks: dict[int, Any] = {}

    def near(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= WINDOW

    def attend(x: Tensor) -> Tensor:
        length = x.size(1)
        if length not in masks:
            masks[length] = create_block_mask(near, None, None, length, length, device=x.device)
        # Three buffers: the compiler takes one buffer in three places for an error.
        queries, keys, values = (x.clone().unflatten(-1, (HEADS, -1)).transpose(1, 2) for _ in range(3))
        return compiled(queries, keys, values, block_mask=masks[length]).transpose(1, 2).flatten(2)

    return attend


def reference_window(x: Tensor) -> Tensor:
    """What `window`, `flex` and LSG at least compute, densely; for the tests."""
    positions = torch.arange(x.size(1))
    heads = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    near = (positions[:, None] - positions).abs() <= WINDOW
    return F.scaled_dot_product_attention(heads, heads, heads, near).transpose(1, 2).flatten(2)


if __name__ == "__main__":
    main()
