#!/usr/bin/env python3
"""What does it cost that the system clears the pages of each layer's tensors anew?

    python benchmarks/cleared_pages.py --threads 1

Forward and backward of `hierarchical_transformer`, 2 layers of width 384: of one document of 16,384 tokens, and of four
of 200 to 9,000 tokens, whose lengths are drawn anew in each round. *Returned*: glibc's malloc as it is, which gives
large tensors back to the system when they are freed, so that the next ones are new pages. *Kept*:
`MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1099511627776 MALLOC_TOP_PAD_=67108864`, so that freed pages serve the next
tensors. Each contender is a process, because malloc reads the variables when it starts. CPU seconds are those of the
process, and those of them that the system took.
"""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import long_encoders
import torch
from harness import RESULTS, Facts, Job, Setting, flags, forget_peak, peak_memory, process_of, write_result

KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
CONTENDERS: dict[str, dict[str, str]] = {"returned": {}, "kept": KEPT}
WORKS = ("one document", "four of drawn lengths")


def build(name: str, setting: Setting) -> Job:
    sizes = {"width": 384, "heads": 6, "layers": 2, "layout": "S|SD"}
    chosen = {**long_encoders.setting(name, 16384), **sizes}
    model, states = long_encoders.model_and_states(long_encoders.HIERARCHICAL, long_encoders.Namespace(**chosen))
    model.train()
    forget_peak()
    generator = torch.Generator().manual_seed(1)

    def step() -> Facts:
        lengths = (
            [16384] if setting["name"] == WORKS[0] else torch.randint(200, 9000, (4,), generator=generator).tolist()
        )
        before = resource.getrusage(resource.RUSAGE_SELF)
        for length in lengths:
            model.zero_grad()
            states(torch.randint(4, 500, (1, length), generator=generator)).square().mean().backward()
        after = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        facts = {
            "system_seconds": round(after.ru_stime - before.ru_stime, 3),
            "faults": after.ru_minflt - before.ru_minflt,
        }
        return {**facts, "peak_bytes": peak_memory(), "held_bytes": pages * resource.getpagesize()}

    return Job(step, {})


def measured(work: str, rounds: int) -> Iterator[Facts]:
    """The repetitions of both contenders, in turns, after a warm-up."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for name, variables in CONTENDERS.items():
            os.environ.update(variables)
            processes[name] = stack.enter_context(process_of(build, name, {"name": work}))
            processes[name]("step")
            for variable in variables:
                del os.environ[variable]
        for number in range(rounds):
            for name, ask in processes.items():
                facts = ask("step")
                print(
                    f"{work}, round {number + 1}: {name} {facts['cpu_seconds']:.2f} CPU s, {facts['faults']:,} faults"
                )
                yield {"work": work, "contender": name, "round": number, **facts}


def main() -> None:
    parser = flags(RESULTS / "cleared_pages.json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    write_result(args.out, runs=[run for work in WORKS for run in measured(work, args.rounds)])


if __name__ == "__main__":
    main()
