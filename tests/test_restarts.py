"""Commands that were killed or have failed, then one thing is changed: the next run equals one from nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from commands import REPOSITORY, environment, write_lines
from safetensors.torch import load_file, save_file

from hat_fairseq.data.outputs import files_below
from hat_fairseq.inference.loading import DEMO
from hat_fairseq.package_files import describe_files

fault = pytest.mark.fault
# `hat` with small blocks, which is killed before it computes block KILL_AT.
SCRIPT = """
import itertools, os, signal, sys
from hat_fairseq import cli
from hat_fairseq.data import blocks
blocks.SIZE, keep, numbers = 2000, blocks._keep, itertools.count()

def killed(*arguments):
    if next(numbers) == int(os.environ["KILL_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return keep(*arguments)

blocks._keep = killed
sys.exit(cli.main())
"""
READER = """
from collections import Counter
from beside import WORD
from hat_fairseq.data.kinds import Document

SPLITS = ("train",)

def read(split, root, counts):
    lines = (root / "lines.txt").read_text().splitlines()
    for number, line in enumerate(lines):
        yield Document(str(number), sentences=(f"{line} {WORD}", f"two {number % 7} ."), target=(f"{number} .",))
"""
WRONG_TEXT = """
_right = clean_block
def clean_block(*arguments):
    members = dict(_right(*arguments))
    return members | {"records": members["records"].replace("two", "wrong")}
"""
FAILS = """
def build_dictionary(*unused):
    raise RuntimeError("broken code")
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a copy of this package, whose code a test changes."""
    shutil.copytree(REPOSITORY / "hat_fairseq", tmp_path / "code/hat_fairseq", ignore=shutil.ignore_patterns("*.pyc"))
    return tmp_path / "code"


@pytest.fixture
def run(package: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs `hat` of the copy."""

    def run(*words: object, kill_at: int = -1) -> subprocess.CompletedProcess:
        variables = environment(PYTHONPATH=package, KILL_AT=kill_at)
        command = [sys.executable, "-c", SCRIPT, *map(str, words)]
        done = subprocess.run(command, env=variables, cwd=package, capture_output=True, text=True, timeout=300)
        assert done.returncode == (-signal.SIGKILL if kill_at >= 0 else done.returncode), done.stderr
        return done

    return run


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def content(out: Path) -> dict[str, bytes]:
    """The files of a result, without the manifest, which has a date."""
    if out.is_file():
        return {"": out.read_bytes()}
    return {name: (out / name).read_bytes() for name in files_below(out) if name != "manifest.json"}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A reader with a module beside it, and its release."""
    (folder := tmp_path / "raw").mkdir()
    (folder / "reader.py").write_text(READER)
    (folder / "beside.py").write_text('WORD = "first"\n')
    (folder / "lines.txt").write_text("".join(f"one {number % 5} of many words\n" * 2 for number in range(200)))
    return folder


@fault("Preprocessing", "code that gives wrong text and fails is corrected after blocks are stored", "right text")
def test_corrected_code(package: Path, raw: Path, run, tmp_path: Path) -> None:
    words = ["preprocess", raw / "reader.py", "--root", raw, "--num-codes", 20, "--out"]
    assert run(*words, tmp_path / "whole").returncode == 0
    stages, binarize = package / "hat_fairseq/data/stages.py", package / "hat_fairseq/data/binarize.py"
    right = stages.read_text(), binarize.read_text()
    append(stages, WRONG_TEXT)
    append(binarize, FAILS)
    failed = run(*words, tmp_path / "out")
    assert failed.returncode == 2 and "broken code" in failed.stderr and list(tmp_path.glob(".out.blocks/*.zip"))
    stages.write_text(right[0])
    binarize.write_text(right[1])
    assert run(*words, tmp_path / "out").returncode == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def other_reader(raw: Path, package: Path) -> list[object]:
    (raw / "reader.py").write_text(READER.replace("two", "three"))
    return []


def other_module(raw: Path, package: Path) -> list[object]:
    (raw / "beside.py").write_text('WORD = "other"\n')
    return []


def other_release(raw: Path, package: Path) -> list[object]:
    times = (path := raw / "lines.txt").stat()
    path.write_text(path.read_text().replace("many", "some"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return []


def other_option(raw: Path, package: Path) -> list[object]:
    return ["--max-source-tokens", 8, "--long-source", "truncate"]


def other_dictionary(raw: Path, package: Path) -> list[object]:
    shutil.copy(raw.parent / "second/bin/dict.source.txt", raw.parent / "first/bin")
    return []


def other_vocabulary(raw: Path, package: Path) -> list[object]:
    shutil.rmtree(raw.parent / "first")
    (raw.parent / "second").rename(raw.parent / "first")
    return []


def other_code(raw: Path, package: Path) -> list[object]:
    append(package / "hat_fairseq/data/stages.py", WRONG_TEXT)
    return []


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [3, 12, 25])
@pytest.mark.parametrize(
    "change",
    [other_reader, other_module, other_release, other_option, other_dictionary, other_vocabulary, other_code],
)
@fault("Preprocessing", "kill -9, then another reader, option, input, dictionary or source", "as a run from nothing")
def test_preprocessing(change, kill_at: int, raw: Path, package: Path, run, tmp_path: Path) -> None:
    words = ["preprocess", raw / "reader.py", "--root", raw]
    if "vocabulary" in change.__name__ or "dictionary" in change.__name__:
        for name, codes in (("first", 20), ("second", 12)):
            assert run(*words, "--num-codes", codes, "--out", tmp_path / name).returncode == 0
        words += ["--vocabulary", tmp_path / "first/bin"]
    run(*words, "--out", tmp_path / "out", kill_at=kill_at)
    assert list(tmp_path.glob(".out.blocks/*.zip"))
    words += change(raw, package)
    for name in ("out", "whole"):
        done = run(*words, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))


def other_weights(folder: Path, package: Path) -> list[object]:
    """With the sizes and times of the old files."""
    model, times = folder / "model", {path: path.stat() for path in (folder / "model").rglob("*")}
    tensors = load_file(model / "model.safetensors")
    noise = torch.Generator().manual_seed(1)
    for tensor in tensors.values():
        if tensor.is_floating_point():
            tensor.add_(torch.randn(tensor.shape, generator=noise, dtype=torch.float32).to(tensor.dtype))
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    (model / "manifest.json").unlink()
    (model / "manifest.json").write_text(json.dumps(describe_files(model), indent=1, ensure_ascii=False) + "\n")
    for path, status in times.items():
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return []


def other_documents(folder: Path, package: Path) -> list[object]:
    path = folder / "in.jsonl"
    path.write_text(path.read_text().replace("remote", "control"))
    return []


def other_generation(folder: Path, package: Path) -> list[object]:
    return ["--generation", '{"beam": 2, "min_len": 7, "max_len_b": 9}']


def other_pages(folder: Path, package: Path) -> list[object]:
    path = package / "hat_fairseq/analysis/page.py"
    append(path, '\n_page = page\ndef page(look):\n    return _page(look) + "<!-- other -->"\n')
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "change"),
    [
        ("summarize", other_weights),
        ("summarize", other_documents),
        ("summarize", other_generation),
        ("look", other_weights),
        ("look", other_pages),
    ],
)
@fault(
    "Generation and prediction",
    "kill -9, then another model of the same sizes and times, input, option or source",
    "as a run from nothing",
)
def test_inference(verb: str, change, package: Path, run, tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "model")
    turns = [{"role": "PM", "text": f"so the remote has {n} buttons and costs {n * 5} euros."} for n in range(8)]
    rows = [{"id": str(n), "turns": turns[n % 4 : n % 4 + 3]} for n in range(6)]
    source = write_lines(tmp_path / "in.jsonl", rows)
    if verb == "look":
        words, flag = ["look", tmp_path / "model", "--input", source, "--device", "cpu"], "--pages"
    else:
        words, flag = ["summarize", "--path", tmp_path / "model", "--input", source, "--device", "cpu"], "--out"
        words += ["--batch-size", 1]
    small = ["--generation", '{"beam": 2, "min_len": 3, "max_len_b": 9}']
    run(*words, *small, flag, tmp_path / "out", kill_at=3)
    assert len(list(tmp_path.glob(".out.blocks/*.zip"))) == 3
    words += change(tmp_path, package) or small
    for name in ("out", "whole"):
        done = run(*words, flag, tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))
