"""Interleaved timing of contenders, shared by all timed benchmarks, and what results and commands have in common.

A script describes its contenders and settings and calls `run`. Each contender of a setting runs in its own process, so
that memory and caches are separate. After one warm-up each, the contenders run in turns, A B A B ..., so that other
load on the machine affects all of them, and times are compared within a round. At the end the processes report what
they computed, and the script's `check` decides whether the sides are comparable. The result is written to `results/`;
`page.py` makes tables of it. Benchmarks and studies without interleaved times use `flags`, `write_result` and the
measures.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

SCRIPT = Path(sys.argv[0]).resolve()  # a benchmark or a study
RESULTS = SCRIPT.parent / "results"
Setting = dict[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The work of a contender; facts are written as JSON.

    Attributes:
        step: one timed repetition (on a GPU until the GPU is done); returns facts such as `{"tokens": 2048}`.
        facts: reported once.
        finish: called after the last repetition, untimed; returns facts for `check`. Keys that begin with `_` are not
            written. `peak_bytes` here or in `facts` replaces the peak of this process.
    """

    step: Callable[[], Facts]
    facts: Facts
    finish: Callable[[], Facts] = dict


Build = Callable[[str, Setting], Job]
Check = Callable[[Setting, dict[str, Facts]], list[str]]


def where() -> str:
    """The device of the contenders."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype() -> torch.dtype:
    """The type of the models: bfloat16 on a GPU, fp32 on the CPU."""
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def device() -> str:
    """Name of the GPU, or of the CPU with its widest instructions that torch uses and its number of cores."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    name, instructions = model.group(1).strip() if model else "unknown", torch.backends.cpu.get_cpu_capability()
    return f"CPU: {name}, {instructions}, {os.cpu_count()} cores"


def peak_memory() -> int:
    """Peak bytes of this process in memory, or on the GPU."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    # Not getrusage, whose peak includes that of the parent process.
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    return int(peak.group(1)) * 1024


def forget_peak() -> None:
    """Resets the peak memory of this process, so that building the models does not count."""
    with contextlib.suppress(OSError):  # not Linux
        Path("/proc/self/clear_refs").write_text("5")
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def flags(out: Path | None = None) -> argparse.ArgumentParser:
    """A parser with the docstring of the script and `--out`."""
    doc = sys.modules["__main__"].__doc__
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = "table of runs" if out is not None and out.suffix == ".gz" else "JSON file"
    parser.add_argument("--out", type=Path, default=out, help=f"{what} (default: in results/)")
    return parser


def without_folder(word: str) -> str:
    """A word of a command as it is recorded; of an absolute path, which is of one machine, only the last two names."""
    name, equals, value = word.rpartition("=")
    path = Path(value)
    return f"{name}{equals}{'/'.join(path.parts[1:][-2:])}" if path.is_absolute() else word


def record_of(*versions: str, **content: Any) -> dict[str, Any]:
    """A result with the entries common to all; `versions`: distributions, recorded if they are installed."""
    record = {
        "question": SCRIPT.stem,
        "command": shlex.join(["python", f"{SCRIPT.parent.name}/{SCRIPT.name}", *map(without_folder, sys.argv[1:])]),
        "device": device(),
        "threads": torch.get_num_threads(),
        "versions": {},
        **content,
    }
    for name in ("torch", "fairseq-fixed", "hat_fairseq", *versions):
        with contextlib.suppress(PackageNotFoundError):
            record["versions"][name] = version(name)
    return record


def write_result(path: Path, *versions: str, **content: Any) -> None:
    """Write a result of one file."""
    record = record_of(*versions, **content)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def run(
    build: Build,
    check: Check,
    *,
    contenders: Sequence[str],
    settings: Sequence[Setting],
    reference: str,
    rounds: int = 5,
    versions: Sequence[str] = (),
) -> None:
    """Measure all settings and write the result, with the flags of the command line.

    Args:
        build: makes the job of a contender in a setting.
        check: takes a setting and, by contender, its facts with what `finish` returned; returns sentences about what
            it verified, and raises SystemExit if the sides are not comparable.
        settings: flat dicts for `build`. "name" may refer to other entries, as in "{length} tokens"; "contenders" and
            "rounds" limit those of this setting.
        reference: the contender that times are divided by.
        versions: distributions whose versions are recorded, if they are installed.
    """
    parser = flags()
    parser.add_argument("--rounds", type=int, default=rounds, help="timed repetitions of each contender and setting")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--contenders", nargs="+", choices=contenders, default=list(contenders))
    indices = range(len(settings))
    parser.add_argument("--settings", type=int, nargs="+", choices=indices, default=list(indices), metavar="INDEX")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="replace this in all --settings")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # of the contenders' processes
    record: dict[str, Any] = {key: [] for key in ("settings", "runs", "processes", "checks")}
    for index in args.settings:
        setting = named(settings[index], args.set)
        everyone = list(setting.get("contenders", contenders))
        present = [name for name in everyone if name in args.contenders]
        runs, ends = measure(build, setting, present, min(args.rounds, setting.get("rounds", args.rounds)))
        whole = present == everyone
        sentences = check(setting, ends) if whole else [f"not compared: only {', '.join(present)} took part"]
        print(f"{setting['name']}: {'; '.join(sentences)}")
        record["settings"].append(setting)
        record["runs"] += runs
        for name, end in ends.items():
            written = {key: value for key, value in end.items() if not key.startswith("_")}
            record["processes"].append({"contender": name, "setting": setting["name"], **written})
        record["checks"].append({"setting": setting["name"], "verified": sentences})
    record["summary"] = summary(record["runs"], reference)
    for name, rows in record["summary"].items():
        for contender, row in rows.items():
            times = f", times {row['times_median']:.2f}" if "times_median" in row else ""
            print(f"{name}: {contender} {row['median']:.3f} s [{row['least']:.3f}, {row['most']:.3f}]{times}")
    question = SCRIPT.stem + ("_gpu" if torch.cuda.is_available() else "")
    path = args.out or RESULTS / f"{question}.json"
    write_result(path, *versions, dtype=str(dtype())[6:], reference=reference, **record)


def named(setting: Setting, changes: Sequence[str]) -> Setting:
    """The setting with `--set` applied, and then its name filled in."""
    setting = dict(setting)
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator or key not in setting:
            raise SystemExit(f"--set {change}: expected KEY=VALUE with one of {', '.join(setting)}")
        try:
            setting[key] = json.loads(value)
        except json.JSONDecodeError:
            setting[key] = value
    return {**setting, "name": setting["name"].format(**setting)}


def measure(
    build: Build, setting: Setting, contenders: Sequence[str], rounds: int
) -> tuple[list[Facts], dict[str, Facts]]:
    """The timed repetitions, in turns, and the final report of each process."""
    with contextlib.ExitStack() as stack:
        processes = {name: stack.enter_context(process_of(build, name, setting)) for name in contenders}
        for ask in processes.values():  # warm-up, one contender after the other
            ask("step")
        runs = []
        for number in range(rounds):
            for name, ask in processes.items():
                facts = ask("step")
                runs.append({"contender": name, "setting": setting["name"], "round": number, **facts})
                print(f"{setting['name']}, round {number + 1}: {name} {facts['seconds']:.3f} s", flush=True)
        return runs, {name: ask("end") for name, ask in processes.items()}


@contextlib.contextmanager
def process_of(build: Build, name: str, setting: Setting) -> Iterator[Callable[[str], Facts]]:
    """A process with the job of a contender; yields the function that asks it for a "step" or its "end"."""
    context = multiprocessing.get_context("spawn")
    connection, other = context.Pipe()
    process = context.Process(target=answer, args=(other, build, name, setting, torch.get_num_threads()))
    process.start()
    other.close()

    def ask(what: str) -> Facts:
        try:
            connection.send(what)
            return connection.recv()
        except (EOFError, OSError):
            process.join()
            status = process.exitcode
            raise SystemExit(f"{name}, {setting['name']}: ended with status {status}; its error is above") from None

    try:
        yield ask
    finally:
        connection.close()  # makes it end, unless it is busy
        process.join(10)
        process.kill()
        process.join()


def summary(runs: Sequence[Facts], reference: str) -> dict[str, dict[str, dict[str, float]]]:
    """For each setting and contender: median, least and most seconds, and the same of the ratios to the reference.

    A ratio is taken within a round.
    """
    by_round = {(run["setting"], run["contender"], run["round"]): run for run in runs}
    result: dict[str, dict[str, dict[str, float]]] = {}
    for setting, name in dict.fromkeys((run["setting"], run["contender"]) for run in runs):
        steps = [run for key, run in by_round.items() if key[:2] == (setting, name)]
        row = spread([run["seconds"] for run in steps], "")
        row["cpu_median"] = round(statistics.median(run["cpu_seconds"] for run in steps), 4)
        if (setting, reference, steps[0]["round"]) in by_round:
            others = [by_round[setting, reference, run["round"]]["seconds"] for run in steps]
            row |= spread([run["seconds"] / other for run, other in zip(steps, others, strict=True)], "times_")
        result.setdefault(setting, {})[name] = row
    return result


def spread(values: Sequence[float], prefix: str) -> dict[str, float]:
    """Median, least and most."""
    figures = {"median": statistics.median(values), "least": min(values), "most": max(values)}
    return {prefix + name: round(value, 4) for name, value in figures.items()}


def mean_and_deviation(name: str, values: Sequence[float]) -> dict[str, float]:
    """`{name}_mean` and `{name}_sd`."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {f"{name}_mean": round(statistics.mean(values), 3), f"{name}_sd": round(deviation, 3)}


def answer(connection: Connection, build: Build, name: str, setting: Setting, threads: int) -> None:
    """Answers requests, "step" or "end", until the other side closes the connection."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    job = build(name, setting)
    with contextlib.suppress(EOFError):
        while True:
            if connection.recv() == "step":
                facts = timed(job.step)
            else:
                facts = {"peak_bytes": peak_memory(), **job.facts}  # before `finish` allocates more
                facts |= job.finish()
            connection.send(facts)


def timed(step: Callable[[], Facts]) -> Facts:
    """The facts of one repetition, with its wall-clock seconds and the CPU seconds of its threads."""
    synchronise()
    begin, cpu = time.perf_counter(), time.process_time()
    facts = step()
    synchronise()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu, **facts}


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
