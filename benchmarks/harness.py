"""Interleaved timing of contenders, shared by all timed benchmarks.

A script describes its contenders and settings and calls `run`. Each contender of a setting runs in its own process (the
script again, with `--child`), so that memory and caches are separate. After one warm-up each, the contenders run in
turns, A B A B ..., so that other load on the machine affects all of them, and times are compared within a round. At the
end the processes report what they computed, and the script's `check` decides whether the sides are comparable. The
result is written to `results/`; `render.py` makes tables of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from machine import device
from worker import Build, Facts, Job, Setting, answer, dtype, where

RESULTS = Path(__file__).resolve().parent / "results"
Check = Callable[[Setting, dict[str, Facts]], list[str]]
__all__ = ["Build", "Check", "Facts", "Job", "Setting", "dtype", "run", "summary", "where"]


def run(
    question: str,
    doc: str,
    build: Build,
    *,
    contenders: Sequence[str],
    settings: Sequence[Setting],
    reference: str,
    check: Check,
    rounds: int = 5,
    threads: int = 2,
    versions: Sequence[str] = (),
    environments: dict[str, dict[str, str]] | None = None,
) -> None:
    """Measure all settings and write the result, with the flags of the command line.

    Args:
        question: name of the script and of its result.
        build: makes the job of a contender in a setting.
        settings: flat dicts for `build`. "name" may refer to other entries, as in "{length} tokens"; "contenders" and
            "rounds" limit those of this setting; "busy" is a number of processes that compute beside it.
        reference: the contender that times are divided by.
        check: takes a setting and, by contender, its facts with what `finish` returned; returns sentences about what
            it verified, and raises SystemExit if the sides are not comparable.
        versions: distributions whose versions are recorded, if they are installed.
        environments: variables of the processes of each contender.
    """
    args = flags(doc, contenders, len(settings), rounds, threads).parse_args()
    chosen = [args.set if index in args.settings else () for index in range(len(settings))]
    settings = [named(setting, changes) for setting, changes in zip(settings, chosen, strict=True)]
    torch.set_num_threads(args.threads)
    if args.child:
        return answer(build, args.child[0], settings[int(args.child[1])])
    record: dict[str, Any] = {
        "question": question,
        "command": " ".join([f"python benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "device": device(),
        "threads": args.threads,
        "dtype": str(dtype())[6:],
        "versions": installed_versions("torch", "fairseq-fixed", *versions),
        "reference": reference,
        **{key: [] for key in ("settings", "runs", "processes", "checks")},
    }
    for index in args.settings:
        setting = settings[index]
        present = [name for name in setting.get("contenders", contenders) if name in args.contenders]
        runs, ends = measure(setting, index, present, args, environments or {})
        record["settings"].append(setting)
        record["runs"] += runs
        record["processes"] += [report(name, setting, end) for name, end in ends.items()]
        whole = present == list(setting.get("contenders", contenders))
        sentences = check(setting, ends) if whole else [f"not compared: only {', '.join(present)} took part"]
        record["checks"].append({"setting": setting["name"], "verified": sentences})
    record["summary"] = summary(record["runs"], reference)
    write(record, args.out or RESULTS / f"{question}{'_gpu' if torch.cuda.is_available() else ''}.json")


def installed_versions(*names: str) -> dict[str, str]:
    """The versions of these distributions. A contender that needs a missing one says so itself."""
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def flags(doc: str, contenders: Sequence[str], settings: int, rounds: int, threads: int) -> argparse.ArgumentParser:
    """The flags that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help="timed repetitions of each contender and setting")
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--out", type=Path, help="JSON file (default: in results/)")
    parser.add_argument("--contenders", nargs="+", choices=contenders, default=list(contenders))
    indices = range(settings)
    parser.add_argument("--settings", type=int, nargs="+", choices=indices, default=list(indices), metavar="INDEX")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="replace this in all --settings")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser


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
    setting: Setting,
    index: int,
    contenders: Sequence[str],
    args: argparse.Namespace,
    environments: dict[str, dict[str, str]],
) -> tuple[list[Facts], dict[str, Facts]]:
    """The timed repetitions, in turns, and the final report of each process."""
    children = {name: start(name, index, args.threads, environments.get(name, {})) for name in contenders}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(setting.get("busy", 0))]
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
        for process in busy:
            process.kill()
            process.wait()


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


def start(name: str, index: int, threads: int, variables: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, sys.argv[0], *sys.argv[1:], "--child", name, str(index)]
    paths = [str(RESULTS.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": str(threads)}
    environment |= variables
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
    kept = {key: value for key, value in end.items() if not key.startswith("_")}
    return {"contender": name, "setting": setting["name"], **kept}


def write(record: dict[str, Any], path: Path) -> None:
    for part in record["checks"]:
        print(f"{part['setting']}: {'; '.join(part['verified'])}")
    for name, rows in record["summary"].items():
        for contender, row in rows.items():
            times = f", times {row['times_median']:.2f}" if "times_median" in row else ""
            print(f"{name}: {contender} {row['median']:.3f} s [{row['least']:.3f}, {row['most']:.3f}]{times}")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


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
