#!/usr/bin/env python3
"""Which kernels does the generation from one document spend its time in, with the hierarchy and without?

    python benchmarks/gpu_kernels.py --out kernels.json
    python benchmarks/gpu_kernels.py --source 128 --new 4 --width 48 --layers 1 --out kernels.json      # anywhere

A beam of 4, bfloat16 on a GPU and fp32 on a CPU, random weights of BART-base's sizes. The time of a kernel is its own,
without those that it calls, in the second of two searches.
"""

from typing import Any

import generation
from harness import RESULTS, dtype, flags, where, write_result
from torch.profiler import ProfilerActivity, profile

MOST = 15  # kernels of each model


def kernels_of(name: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Seconds of the whole search by the profiler, and those of the kernels that take most, with their calls."""
    model = (generation.hat if name == "hat" else generation.plain)(chosen)
    model.to(where(), dtype())
    (tokens,) = generation.batches(chosen)
    generation.our_search(model, tokens, chosen["new"])
    on_gpu = where() == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]) as profiled:
        generation.our_search(model, tokens, chosen["new"])
    key = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    rows = sorted(profiled.key_averages(), key=lambda each: -getattr(each, key))
    kernels = [{"kernel": each.key, "seconds": getattr(each, key) / 1e6, "calls": each.count} for each in rows[:MOST]]
    return {"model": name, "seconds": sum(getattr(each, key) for each in rows) / 1e6, "kernels": kernels}


def main() -> None:
    parser = flags(RESULTS / "gpu_kernels.json")
    parser.add_argument("--source", type=int, default=3072, help="tokens of the document")
    parser.add_argument("--new", type=int, default=64, help="tokens that are generated")
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=6)
    args = parser.parse_args()
    sizes = {"width": args.width, "heads": args.width // 64 or 1, "layers": args.layers}
    chosen = generation.setting(args.source, 1, args.new, **sizes)
    runs = [kernels_of(name, chosen) for name in ("hat", "plain")]
    for run in runs:
        print(f"{run['model']}: {run['seconds']:.3f} s")
        for each in run["kernels"]:
            print(f"  {each['seconds']:.4f} s, {each['calls']:>6} calls, {each['kernel']}")
    write_result(args.out, dtype=str(dtype())[6:], runs=runs)


if __name__ == "__main__":
    main()
