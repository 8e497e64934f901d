"""Interleaved timing of contenders, shared by all timed benchmarks, and what results and commands have in common.

A script describes its contenders and settings and calls `run`. Each contender of a setting runs in its own process (the
script again, with `--child`), so that memory and caches are separate. After one warm-up each, the contenders run in
turns, A B A B ..., so that other load on the machine affects all of them, and times are compared within a round. At the
end the processes report what they computed, and the script's `check` decides whether the sides are comparable. The
result is written to `results/`; `render.py` makes tables of it. A contender that is a command runs it by
`run_commands`. Benchmarks without interleaved times use `flags`, `write_result` and the measures.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).resolve().parent / "results"
Setting = dict[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The work of a contender; all facts pass through JSON.

    Attributes:
        step: one timed repetition (on a GPU until the GPU is done); returns facts such as `{"tokens": 2048}`.
        facts: reported once.
        finish: called after the last repetition, untimed; returns facts for `check`. Keys that begin with `_` are not
            written. `peak_bytes` here or in `facts` replaces the peak of this process, if other processes do the work.
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
    """Name of the GPU, or of the CPU with its number of cores."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    return f"CPU: {model.group(1).strip() if model else 'unknown'}, {os.cpu_count()} cores"


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
    parser.add_argument("--out", type=Path, default=out, help="JSON file (default: in results/)")
    return parser


def write_result(path: Path, *versions: str, **content: Any) -> None:
    """Write a result with the entries common to all; `versions`: distributions, recorded if they are installed."""
    question = Path(sys.argv[0]).stem
    record = {
        "question": question,
        "command": shlex.join(["python", f"benchmarks/{question}.py", *sys.argv[1:]]),
        "device": device(),
        "threads": torch.get_num_threads(),
        "versions": {},
        **content,
    }
    for name in ("torch", "fairseq-fixed", "hat_fairseq", *versions):
        with contextlib.suppress(PackageNotFoundError):
            record["versions"][name] = version(name)
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
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.child:
        return answer(build, args.child[0], named(settings[int(args.child[1])], args.set))
    record: dict[str, Any] = {key: [] for key in ("settings", "runs", "processes", "checks")}
    for index in args.settings:
        setting = named(settings[index], args.set)
        everyone = list(setting.get("contenders", contenders))
        present = [name for name in everyone if name in args.contenders]
        runs, ends = measure(setting, index, present, args)
        whole = present == everyone
        sentences = check(setting, ends) if whole else [f"not compared: only {', '.join(present)} took part"]
        print(f"{setting['name']}: {'; '.join(sentences)}")
        record["settings"].append(setting)
        record["runs"] += runs
        record["processes"] += [report(name, setting, end) for name, end in ends.items()]
        record["checks"].append({"setting": setting["name"], "verified": sentences})
    record["summary"] = summary(record["runs"], reference)
    for name, rows in record["summary"].items():
        for contender, row in rows.items():
            times = f", times {row['times_median']:.2f}" if "times_median" in row else ""
            print(f"{name}: {contender} {row['median']:.3f} s [{row['least']:.3f}, {row['most']:.3f}]{times}")
    question = Path(sys.argv[0]).stem + ("_gpu" if torch.cuda.is_available() else "")
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
    setting: Setting, index: int, contenders: Sequence[str], args: argparse.Namespace
) -> tuple[list[Facts], dict[str, Facts]]:
    """The timed repetitions, in turns, and the final report of each process."""
    children = {name: start(name, index, args.threads) for name in contenders}
    try:
        for name, child in children.items():  # warm-up, one contender after the other
            ask(child, "step", name, setting)
        runs = []
        for number in range(min(args.rounds, setting.get("rounds", args.rounds))):
            for name, child in children.items():
                facts = ask(child, "step", name, setting)
                runs.append({"contender": name, "setting": setting["name"], "round": number, **facts})
                print(f"{setting['name']}, round {number + 1}: {name} {facts['seconds']:.3f} s", flush=True)
        return runs, {name: ask(child, "end", name, setting) for name, child in children.items()}
    finally:
        for child in children.values():
            end(child)


def end(child: subprocess.Popen[str]) -> None:
    """Closes the input of a child, which makes it end; kills it if it is still busy after 10 seconds."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def start(name: str, index: int, threads: int) -> subprocess.Popen[str]:
    command = [sys.executable, sys.argv[0], *sys.argv[1:], "--child", name, str(index)]
    paths = [str(RESULTS.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(child: subprocess.Popen[str], what: str, name: str, setting: Setting) -> Facts:
    """The answer of a child; exits if the child has ended without one."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(what + "\n")
        child.stdin.flush()
    if line := child.stdout.readline():
        return json.loads(line)
    raise SystemExit(f"{name}, {setting['name']}: ended with status {child.wait()}; its error is above")


def report(name: str, setting: Setting, end: Facts) -> Facts:
    """The part of a final report that is written."""
    written = {key: value for key, value in end.items() if not key.startswith("_")}
    return {"contender": name, "setting": setting["name"], **written}


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


def answer(build: Build, name: str, setting: Setting) -> None:
    """Answers requests on stdin, `step` or `end`; output of libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.manual_seed(1)
    job = build(name, setting)
    for line in sys.stdin:
        if line.strip() == "step":
            facts = timed(job.step)
        else:
            facts = {"peak_bytes": peak_memory(), **job.facts}  # before `finish` allocates more
            facts |= job.finish()
        answers.write(json.dumps(facts) + "\n")
        answers.flush()


def timed(step: Callable[[], Facts]) -> Facts:
    """The facts of one repetition, with its wall-clock seconds and the CPU seconds of its threads and processes."""
    synchronise()
    begin, cpu = time.perf_counter(), cpu_seconds()
    facts = step()
    synchronise()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds() - cpu, **facts}


def cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# The peak memory of a child includes that of its parent at the fork, so a small process starts the command.
_BETWEEN = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(status)
"""


@functools.cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    """A folder for bytecode, cached in spite of PYTHONDONTWRITEBYTECODE: after the warm-up a command has its own."""
    return tempfile.TemporaryDirectory(prefix="bytecode-")


def surroundings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: that of this process, a folder for bytecode, and `environment`."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**variables, "PYTHONPYCACHEPREFIX": _bytecode().name, **(environment or {})}


def run_commands(commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None) -> int:
    """Run commands one after the other and return the peak bytes of their processes; RuntimeError if one fails.

    `environment` is added to that of this process.
    """
    peak = 0
    for command in commands:
        words = [sys.executable, "-S", "-c", _BETWEEN, *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, env=surroundings(environment))
        if done.returncode:
            tail = " | ".join(done.stderr.strip().splitlines()[-3:])
            raise RuntimeError(f"{' '.join(map(str, command))} ended with status {done.returncode}: {tail}")
        peak = max(peak, int(done.stdout))
    return peak
