"""Running real commands, in this process and in others, and files of JSON lines for them."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
IN_EVERY_PROCESS = REPOSITORY / "tests/support/in_every_process"  # code that Python runs when it starts
USER_DIR = REPOSITORY / "hat_fairseq"
TWO_PROCESSES = ("torchrun", "--standalone", "--nproc-per-node", 2, "--no-python", "fairseq-train")
WITHOUT_LOCKS = (sys.executable, str(REPOSITORY / "tests/support/without_locks.py"))  # before a command
# Before a command that gets signals: nohup and a shell's background have their processes ignore some of them.
HEEDING = ("env", "--default-signal=INT,HUP")
# What only the extra `train` installs: an environment without it lacks these.
ABSENT = (
    "fairseq",
    "fairseq_cli",
    "omegaconf",
    "hydra",
    "antlr4",
    "bitarray",
    "cffi",
    "Cython",
    "cython",
    "scipy",
    "sklearn",
)
TINY_TRAINING = (
    "--task document_to_text --arch hat_transformer_tiny --role-stream role --max-source-positions 128 "
    "--criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 1e-3 --cpu "
    "--batch-size 2 --log-format json --log-interval 1 --num-workers 1 --no-epoch-checkpoints --seed 3"
)
# Of tests, which import torch after this module, and of their processes alike: other numbers have other last bits.
THREADS = os.environ.setdefault("OMP_NUM_THREADS", "1")


def training_words(data: Path, save_dir: Path, *flags: object) -> list[str]:
    """What follows fairseq-train for a tiny model on the AMI sample; flags given later win."""
    return [*map(str, [data, "--user-dir", USER_DIR, *TINY_TRAINING.split(), "--save-dir", save_dir, *flags])]


def environment(**variables: object) -> dict[str, str]:
    """The variables of a process that imports this repository."""
    paths = [REPOSITORY] + [IN_EVERY_PROCESS] * bool(os.environ.get("HAT_SHAKEN"))
    common = {"OMP_NUM_THREADS": THREADS, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return os.environ | {name: str(value) for name, value in (common | variables).items()}


def run_command(*command: object, check: bool = True, **options: object) -> subprocess.CompletedProcess:
    """Runs a command of this environment (`fairseq-train`, `hat`, ...); its whole output is shown when it fails."""
    program = Path(sys.executable).parent / str(command[0])
    words = [str(word) for word in (program if program.exists() else command[0], *command[1:])]
    options = {"env": environment(), "timeout": 300} | options
    result = subprocess.run(words, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if check and result.returncode:
        raise AssertionError(f"{' '.join(words)}\nexit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


def generation_flags(options: dict[str, Any]) -> list[str]:
    """Options of generation as the commands take them."""
    flags = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return [name if value is True else f"{name}={value}" for name, value in flags.items()]


def hat(*words: object) -> int:
    """The exit status of a command of this package, in this process."""
    from hat_fairseq import cli  # not above: `warm.py` imports fairseq before the plugin

    return cli.main([str(word) for word in words])


def refusal(*words: object) -> str:
    """What a command of this package that ends with status 2 prints to stderr; the last line is its error."""
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        status = hat(*words)
    lines = printed.getvalue().splitlines()
    assert status == 2, (status, lines)
    assert lines[-1].startswith("hat: error: "), (status, lines)
    return printed.getvalue()


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Writes a file of JSON lines, and its folder; returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.open(encoding="utf-8")]


@cache
def recipe_sections() -> dict[str, Any]:
    """The flags of all recipes, by section."""
    from hat_fairseq.recipes import files

    return {name: files.load(files.find(name)) for name in files.names()}
