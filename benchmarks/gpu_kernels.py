"""Checks of `gpu.py`: which kernel of SDPA attends, and how often the host waits for the device.

`aten::_scaled_dot_product_NAME_attention` in torch's profiler tells the kernel; the math kernel stores the weights of
all queries and keys. A wait is a host-device synchronisation, which `torch.cuda.set_sync_debug_mode` reports.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu_equal import batch, on_a_gpu_only, search, small_model
from peers import EOS, PAD
from torch.profiler import ProfilerActivity, profile, record_function
from train_step import OURS, criterion_of
from worker import Facts, dtype, where

from hat_fairseq.generation.beam_search import BeamSearchGenerator
from hat_fairseq.modules.attention import HeadProjections

STEPPED = (
    "hat_bart",
    "hat_roberta",
    "poolingformer",
    "ernie_sparse",
    "hierarchical_transformer",
)  # models of `gpu_equal`
SIZES = {"width": 256, "attention_dropout": 0.1}  # heads of 64 channels, as in large models
STEPS = (16, 48)  # tokens of two texts: waits for a token are the difference, so those at the beginning do not count
NO_WAITS = "waits: a CPU has none"
PLACES = 5  # the most frequent places of waits that are reported
KERNEL = re.compile(r"aten::_scaled_dot_product_(?:attention_)?(math|flash|efficient|cudnn)(?!\w*backward)\w*")


def kernels(name: str) -> Facts:
    """Kernels of each attention in training, and in generation if there is a decoder, with and without padding.

    None may be the math kernel. On the CPU a step of the decoder has a kernel of the package.
    """
    model, found = trained(name), Facts()
    for padding, shares in (("without padding", [1, 1, 1, 1]), ("with padding", [1, 0.9, 0.5, 0.3])):
        data = batch(shares=shares)
        found[f"training {padding}"] = attentions(model.train(), partial(training_step, model, data))
        if hasattr(model, "decoder"):
            generate = partial(texts_of, model.eval(), BeamSearchGenerator, data, 8)
            found[f"generation {padding}"] = attentions(model, generate)
    told = [{kernel for counts in part.values() for kernel in counts} for part in found.values()]
    if where() == "cpu":
        return found | on_a_gpu_only("the kernels of a GPU, and that none is the math kernel")
    return found | {"ok": all(part and "math" not in part for part in told)}


def trained(name: str) -> Any:
    return small_model(name, **SIZES).to(where(), dtype())


def training_step(model: Any, data: dict[str, Any]) -> None:
    model.zero_grad()
    if hasattr(model, "decoder"):
        loss = criterion_of(OURS)(model, data)[0]
    else:  # without a head, which would wait
        loss = model(data["net_input"]["src_tokens"], features_only=True)[0].float().sum()
    loss.backward()


def texts_of(model: Any, generator_class: Any, data: dict[str, Any], new: int) -> None:
    """Beam search for texts of exactly `new` tokens."""
    search(model, generator_class, data["net_input"]["src_tokens"], {"min_len": new, "max_len_b": new})


def attentions(model: Any, run: Callable[[], None]) -> dict[str, dict[str, int]]:
    """By attention, such as `decoder encoder_attn`, the kernels that ran in its forward pass and how often."""
    handles, spans = [], {}
    for name, module in model.named_modules():
        if isinstance(module, HeadProjections):
            kind = "attention: " + " ".join(part for part in name.split(".") if part != "layers" and not part.isdigit())
            spans[module] = kind
            handles.append(module.register_forward_pre_hook(lambda module, _: enter(spans[module])))
            handles.append(module.register_forward_hook(lambda *_: leave()))
    opened: list[Any] = []

    def enter(kind: str) -> None:
        opened.append(record_function(kind))
        opened[-1].__enter__()

    def leave() -> None:
        opened.pop().__exit__(None, None, None)

    try:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            run()
    finally:
        for handle in handles:
            handle.remove()
    return by_attention(profiler.events())


def by_attention(events: Any) -> dict[str, dict[str, int]]:
    """The kernels among the events of a profile; those outside of all attentions under their own name."""
    found: dict[str, Counter[str]] = {}
    for event in events:
        if told := KERNEL.fullmatch(event.name):
            outer = next((kind for kind in ancestors(event) if kind.startswith("attention: ")), "attention: elsewhere")
            found.setdefault(outer.removeprefix("attention: "), Counter())[told[1]] += 1
    return {kind: dict(counts) for kind, counts in found.items()}


def ancestors(event: Any) -> Any:
    while (event := event.cpu_parent) is not None:
        yield event.name


def decoding_waits(generator_class: Any) -> Facts:
    """Waits for each token of a beam search, and where they are."""
    model, data = trained("hat_bart").eval(), batch()
    model.decoder.output_projection.weight.data[[EOS, PAD]] = 0  # no text ends early
    counts = [waits(partial(texts_of, model, generator_class, data, new)) for new in STEPS]
    more = {place: counts[1][place] - counts[0][place] for place in counts[1]}
    return {"a token": sum(more.values()) / (STEPS[1] - STEPS[0]), "places": most(more)} | on_a_gpu_only(NO_WAITS)


def training_waits(name: str) -> Facts:
    """Waits of a forward and backward pass."""
    model, data = trained(name).train(), batch()
    found = waits(partial(training_step, model, data))
    return {"a step": sum(found.values()), "places": most(found)} | on_a_gpu_only(NO_WAITS)


def waits(run: Callable[[], None]) -> Counter[str]:
    """Where the host waits for the device, and how often; the first call is a warm-up."""
    run()
    with warnings.catch_warnings(record=True) as seen, told_of_waits():
        warnings.simplefilter("always")
        run()
    told = [warning for warning in seen if "called a synchronizing" in str(warning.message)]
    return Counter(f"{Path(warning.filename).name}:{warning.lineno}" for warning in told)


@contextlib.contextmanager
def told_of_waits() -> Any:
    if where() == "cpu":
        yield
        return
    torch.cuda.set_sync_debug_mode("warn")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def most(places: Any) -> dict[str, int]:
    return dict(itertools.islice(Counter(places).most_common(), PLACES))
