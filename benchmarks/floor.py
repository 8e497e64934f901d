#!/usr/bin/env python3
"""How far from the limit of the machine? Our times beside the least time that this processor needs.

    python benchmarks/floor.py --threads 2

The floor of a part is its FLOP by the rate of the fastest matrix product, plus its bytes by the bandwidth of reading.
Both rates are measured in the same run, before and after the parts, and the better one counts; so does the least time
of a part, because other guests of the machine slow down single rounds. torch counts the FLOP of matrix products and
attention. Bytes are those of weights: a forward pass reads each once, a backward pass reads it and writes its gradient,
and Adam reads weight, gradient and two moments and writes all but the gradient. A decoding step reads the weights of
the decoder, and the keys and values of the source once for all hypotheses. The floor leaves out what lies between the
products: layer norms, activations, softmaxes, and their reading and writing.

Models have 6 + 6 layers of width 768, and no dropout. A decoding step is one of four hypotheses for a document of 3,072
tokens: the difference between searches of 56 and of 8 tokens, by 48. The update is that of `training.py`, with a target
of 512 tokens. The encoders are those of `long_encoders.py`, with 3 layers, forward and backward.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import generation
import long_encoders
import torch
import torch.nn.functional as F
import training
from harness import RESULTS, flags, write_result
from peers import parameters_of
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from hat_fairseq.kernels import Linear, cpu_precisions, set_precision, torch_private

SETTING = generation.setting(3072, 1)
FEW, MANY = 8, 56  # tokens of the two searches
SCALAR = 4  # bytes
BACKWARD, ADAM = 2, 7  # times that each weight, or a number of its own, is read or written
Call = Callable[[], object]


@dataclass
class Part:
    """What is timed: `call`, without the time of `besides`, divided by `number`.

    Attributes:
        flop, bytes: of one of `number`.
        product: the matrix product whose rate counts, fp32 or int8.
    """

    name: str
    call: Call
    flop: float
    bytes: float
    besides: Call | None = None
    number: int = 1
    product: str = "fp32"


def main() -> None:
    parser = flags(RESULTS / "floor.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    before, runs = rates(), [measured(part, args.rounds) for part in parts()]
    best = {name: max(rate, before[name]) for name, rate in rates().items()}
    for run in runs:
        run["floor"] = run["flop"] / best[run["product"]] + run["bytes"] / best["reading"]
        print(f"{run['part']}: {run['least']:.4f} s, {run['least'] / run['floor']:.2f} times the floor", flush=True)
    write_result(args.out, rounds=args.rounds, rates=best, runs=runs)


def parts() -> Iterator[Part]:
    yield encoder()
    yield decoding_step("fp32")
    if "int8" in cpu_precisions():
        yield decoding_step("int8")
    yield update()
    for length in (4096, 16384):
        yield from (
            long_encoder(name, length) for name in ("hierarchical_transformer", "poolingformer", "ernie_sparse")
        )


def encoder() -> Part:
    """HAT's encoder with weights in oneDNN's layout."""
    model, tokens = generation.hat(SETTING), generation.sources(SETTING)
    call = torch.no_grad()(partial(model.encoder, tokens))
    flop, numbers = counted(call), weights_of(model.encoder)
    set_precision(model, "fp32")
    return Part("encoder, forward, 3,072 tokens", call, flop, SCALAR * numbers)


def decoding_step(precision: str) -> Part:
    """A step of the beam search, in which the keys and values of the source are in memory."""
    model, tokens = generation.hat(SETTING), generation.sources(SETTING)
    few, many = (partial(generation.our_search, model, tokens, new) for new in (FEW, MANY))
    flop = (counted(many) - counted(few)) / (MANY - FEW)
    numbers = weights_of(
        model.decoder, without=("encoder_attn.k", "encoder_attn.v", "sentence_attn.k", "sentence_attn.v")
    )
    cached = 2 * SETTING["layers"] * SETTING["source"] * SETTING["width"]
    size, cached_size = (SCALAR, SCALAR) if precision == "fp32" else (1, 2)
    set_precision(model, precision)
    name = f"decoding step, {precision}, 3,072 tokens x 1, beam 4"
    return Part(name, many, flop, size * numbers + cached_size * cached, few, MANY - FEW, precision)


def update() -> Part:
    chosen = training.setting(SETTING["source"], SETTING["width"], SETTING["layers"], 0.0)
    model = training.model_of("hat_bart_base", **training.model_sizes(chosen) | {"dropout": 0.0})
    call = training.update_job(model, training.CHUNKED, chosen).step
    numbers = weights_of(model) * (1 + BACKWARD) + parameters_of(model) * ADAM
    return Part(f"update, 3,072 to {chosen['target']} tokens", call, counted(call), SCALAR * numbers)


def long_encoder(name: str, length: int) -> Part:
    job = long_encoders.build(name, long_encoders.setting("", length))
    numbers = job.facts["parameters"] - job.facts["tables"]
    return Part(f"{name}, 3 layers, {length:,} tokens", job.step, counted(job.step), SCALAR * numbers * (1 + BACKWARD))


def weights_of(module: nn.Module, without: tuple[str, ...] = ()) -> int:
    """Numbers of all linear maps, but those whose names contain one of `without`."""
    layers = ((name, layer) for name, layer in module.named_modules() if isinstance(layer, Linear))
    return sum(layer.weight.numel() for name, layer in layers if not any(part in name for part in without))


def counted(call: Call) -> int:
    """FLOP of a call whose weights are not packed."""
    formulas = {
        torch_private.flash_attention: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
        torch_private.flash_attention_backward: lambda g, q, k, v, *_, **__: sdpa_backward_flop_count(g, q, k, v),
    }
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        call()
    return counter.get_total_flops()


def measured(part: Part, rounds: int) -> dict[str, Any]:
    """The part in words and figures, with its median, least and most seconds."""
    part.call()  # warm-up
    times = []
    for _ in range(rounds):
        besides = 0.0 if part.besides is None else seconds(part.besides)
        times.append((seconds(part.call) - besides) / part.number)
        print(f"{part.name}: {times[-1]:.4f} s", flush=True)
    spread = {"seconds": statistics.median(times), "least": min(times), "most": max(times)}
    return {"part": part.name, "product": part.product, "flop": part.flop, "bytes": part.bytes, **spread}


def rates() -> dict[str, float]:
    """FLOP/s of the fastest of ten products of (3072, 768) and (768, 3072) matrices, bytes/s of ten sums of 256 MB."""
    x, weight, numbers = torch.randn(3072, 768), torch.randn(3072, 768), torch.ones(1 << 26)
    packed = torch_private.pack(weight, len(x))
    calls: dict[str, list[Call]] = {
        "fp32": [partial(F.linear, x, weight), partial(torch_private.onednn_linear, x, packed)],
    }
    if "int8" in cpu_precisions():
        product = torch_private.onednn_int8(weight.to(torch.int8), torch.ones(len(weight)))
        calls["int8"] = [partial(product, x.abs().to(torch.uint8))]
    flop = 2 * x.numel() * len(weight)
    result = {name: flop / min(map(fastest, each)) for name, each in calls.items()}
    return result | {"reading": SCALAR * len(numbers) / fastest(numbers.sum)}


def fastest(call: Call) -> float:
    return min(seconds(call) for _ in range(10))


def seconds(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
