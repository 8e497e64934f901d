#!/usr/bin/env python3
"""Is it right on a GPU, and how fast?

    python benchmarks/gpu.py                        # on one GPU, in 9 minutes; again: what is lacking or has failed
    python benchmarks/gpu.py --only equality waits  # groups of checks, or single ones
    python benchmarks/gpu.py --device cpu --small   # tries all checks with tiny models, without a GPU

`equality`: loss, outputs and gradients of every kind of model in fp32, bf16 and fp16 beside fp32 on the CPU, as
relative distances. `beam`: how many documents get the same texts as from fairseq's loop, and as on the CPU. `kernels`:
the kernels of SDPA that ran in training and generation; the math kernel is a failure. `waits`: how often the host
waited for the GPU. `batch`: the largest number of documents in an update, by doubling. The other checks are timed.

The file is written after each check. A check that fails does not stop the others, and makes the exit status 1. One that
would probably not end within `--minutes` is left out and named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

import gpu_equal
import gpu_kernels
import gpu_speed
import harness
import torch
from fairseq.sequence_generator import SequenceGenerator
from gpu_run import Checks, Workers, serve, timed
from machine import device
from worker import Facts, dtype

from hat_fairseq.generation.beam_search import BeamSearchGenerator

PATIENCE = (120, 5)  # a check is ended after these seconds and so many times those that are expected


def all_checks(small: bool) -> Checks:
    """In the order in which they run."""
    return {
        **{f"equality/{name}": (6, partial(gpu_equal.equality, name)) for name in gpu_equal.MODELS},
        **{f"beam/{name}": (20, partial(gpu_equal.beam, name)) for name in gpu_equal.SEARCHES},
        **{f"kernels/{name}": (8, partial(gpu_kernels.kernels, name)) for name in gpu_kernels.STEPPED},
        "waits/decoding": (10, partial(gpu_kernels.decoding_waits, BeamSearchGenerator)),
        "waits/fairseq": (10, partial(gpu_kernels.decoding_waits, SequenceGenerator)),
        **{f"waits/{name}": (5, partial(gpu_kernels.training_waits, name)) for name in gpu_kernels.STEPPED},
        **dict.fromkeys(gpu_speed.SETTINGS, (45, None)),
        "batch/largest": (45, partial(gpu_speed.largest_batch, small)),
    }


def main() -> None:
    args = flags()
    torch.set_num_threads(args.threads)
    checks = all_checks(args.small)
    if args.child:
        return serve(checks)
    chosen = [name for name in checks if not args.only or {name, name.split("/")[0]} & {*args.only}]
    record, end = begun(args), time.monotonic() + 60 * args.minutes
    done = {one["check"]: one["ok"] for one in record["tested"]}
    with contextlib.closing(Workers(args)) as workers:
        for name in sorted((name for name in chosen if not done.get(name)), key=lambda name: name in done):
            seconds, run = checks[name]
            if time.monotonic() + seconds > end:
                continue
            begin = time.monotonic()
            limit = PATIENCE[0] + PATIENCE[1] * seconds
            found = workers.ask(name, limit) if run else timed(name, args, limit, record)
            told = {"check": name, "ok": found.pop("ok", True), "seconds": round(time.monotonic() - begin, 1), **found}
            record["tested"] = [one for one in record["tested"] if one["check"] != name] + [told]
            write(record, args.out)
            state = "ok    " if told["ok"] else "FAILED"
            print(f"{state} {name}, {told['seconds']} s: {json.dumps(found)}", flush=True)
    done = {one["check"]: one["ok"] for one in record["tested"]}
    write(record | {"not_run": [name for name in checks if name not in done]}, args.out)
    failed, left_out = [n for n in chosen if done.get(n) is False], [n for n in chosen if n not in done]
    if failed:
        print(f"failed: {', '.join(failed)}")
    if left_out:
        print(f"left out after {args.minutes:g} minutes, the same command goes on: {', '.join(left_out)}")
    print(f"{len(chosen) - len(failed) - len(left_out)} of {len(chosen)} checks hold: {args.out}")
    sys.exit(bool(failed))


def flags() -> argparse.Namespace:
    """The command line.

    Raises:
        SystemExit: with status 2, no GPU, or an unknown check.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(all_checks(False))
    known = [*dict.fromkeys(name.split("/")[0] for name in names), *names]
    parser.add_argument("--only", nargs="+", choices=known, metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--out", type=Path, help="JSON file (default: results/gpu.json, with --small gpu_small.json)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny models")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # here and in the processes started here
        if not args.small:
            refuse("--device cpu needs --small: full sizes take hours on a CPU")
    elif not torch.cuda.is_available():
        refuse("torch finds no GPU; --device cpu --small tries the checks without one")
    args.out = args.out or (Path("gpu_small.json") if args.small else harness.RESULTS / "gpu.json")
    return args


def refuse(message: str) -> NoReturn:
    print(f"gpu.py: error: {message}", file=sys.stderr)
    sys.exit(2)


def begun(args: argparse.Namespace) -> Facts:
    """The record in `args.out`, with this command, or a new one.

    Raises:
        SystemExit: with status 2, the file is from another device, other versions or other sizes.
    """
    versions = harness.installed_versions("torch", "fairseq-fixed", "transformers", "ctranslate2")
    about = {"question": "gpu", "device": device(), "small": args.small, "threads": args.threads, "versions": versions}
    new = {key: [] for key in ("tested", "settings", "runs", "processes", "checks")}
    record = about | {"dtype": str(dtype())[6:], "reference": "hat", "summary": {}, "not_run": []} | new
    if args.out.is_file():
        record = json.loads(args.out.read_text(encoding="utf-8"))
        if other := [key for key, value in about.items() if record.get(key) != value]:
            refuse(f"{args.out} has other {' and '.join(other)}; give another --out, or delete it")
    return record | {"command": " ".join(["python benchmarks/gpu.py", *sys.argv[1:]])}


def write(record: Facts, path: Path) -> None:
    """Replaces the file at once, so that an interruption leaves a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".part").replace(path)


if __name__ == "__main__":
    main()
