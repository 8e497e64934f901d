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
from byte_level_bpe import write_byte_level_bpe
from commands import REPOSITORY, environment, write_lines
from safetensors.torch import load_file, save_file
from sentencepiece_model import write_model
from warm import WarmPython

from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.files import files_below, sha256_of
from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe
from hat_fairseq.weights.names import DEMO

fault = pytest.mark.fault
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
    block = _right(*arguments)
    return replace(block, files={name: piece.replace(b"two", b"wrong") for name, piece in block.files.items()})
"""
FAILS = """
def binarize_text(*unused):
    raise RuntimeError("broken code")
"""


@pytest.fixture
def run(warm: WarmPython, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs `hat` with small blocks, of a copy of this package if there is one (`copy_package`)."""
    support = REPOSITORY / "tests/support"

    def run(*words: object, kill_at: int = -1, cwd: Path = tmp_path) -> subprocess.CompletedProcess:
        command = ["killed", str(kill_at), *map(str, words)]
        if (package := tmp_path / "code").exists():
            options = {"env": environment(PYTHONPATH=f"{package}{os.pathsep}{support}"), "timeout": 300}
            program = [sys.executable, "-m", *command]
            done = subprocess.run(program, cwd=cwd, capture_output=True, text=True, **options)  # type: ignore[call-overload]
        else:
            done = warm.completed(command, cwd, check=False)
        assert done.returncode == (-signal.SIGKILL if kill_at >= 0 else done.returncode), done.stderr
        return done

    return run


def copy_package(tmp_path: Path) -> Path:
    """Copies this package into a folder, so that its code can change; `run` takes the copy."""
    shutil.copytree(REPOSITORY / "hat_fairseq", tmp_path / "code/hat_fairseq", ignore=shutil.ignore_patterns("*.pyc"))
    return tmp_path / "code/hat_fairseq"


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


@pytest.mark.slow
@fault("Preprocessing", "code that gives wrong text and fails is corrected after blocks are stored", "right text")
def test_corrected_code(raw: Path, run, tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    words = ["preprocess", raw / "reader.py", "--root", raw, "--num-codes", 20, "--out"]
    assert run(*words, tmp_path / "whole").returncode == 0
    stages, binarize = package / "data/stages.py", package / "data/binarize.py"
    right = stages.read_text(), binarize.read_text()
    append(stages, WRONG_TEXT)
    append(binarize, FAILS)
    failed = run(*words, tmp_path / "out")
    assert failed.returncode == 2
    assert "broken code" in failed.stderr
    assert list(tmp_path.glob(".out.blocks/*.zip"))
    stages.write_text(right[0])
    binarize.write_text(right[1])
    assert run(*words, tmp_path / "out").returncode == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def other_reader(raw: Path) -> list[object]:
    (raw / "reader.py").write_text(READER.replace("two", "three"))
    return []


def other_module(raw: Path) -> list[object]:
    (raw / "beside.py").write_text('WORD = "other"\n')
    return []


def other_release(raw: Path) -> list[object]:
    times = (path := raw / "lines.txt").stat()
    path.write_text(path.read_text().replace("many", "some"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return []


def other_option(raw: Path) -> list[object]:
    return ["--max-source-tokens", 8, "--long-source", "truncate"]


def other_dictionary(raw: Path) -> list[object]:
    shutil.copy(raw.parent / "second/bin/dict.source.txt", raw.parent / "first/bin")
    return []


def other_vocabulary(raw: Path) -> list[object]:
    shutil.rmtree(raw.parent / "first")
    (raw.parent / "second").rename(raw.parent / "first")
    return []


def other_code(raw: Path) -> list[object]:
    append(raw.parent / "code/hat_fairseq/data/stages.py", WRONG_TEXT)
    return []


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [3, 12, 25])
@pytest.mark.parametrize(
    "change", [other_reader, other_module, other_release, other_option, other_dictionary, other_vocabulary, other_code]
)
@fault("Preprocessing", "kill -9, then another reader, option, input, dictionary or source", "as a run from nothing")
def test_preprocessing(change, kill_at: int, raw: Path, run, tmp_path: Path) -> None:
    if change is other_code:
        copy_package(tmp_path)
    words = ["preprocess", raw / "reader.py", "--root", raw]
    if "vocabulary" in change.__name__ or "dictionary" in change.__name__:
        for name, codes in (("first", 20), ("second", 12)):
            assert run(*words, "--num-codes", codes, "--out", tmp_path / name).returncode == 0
        words += ["--vocabulary", tmp_path / "first/bin"]
    run(*words, "--out", tmp_path / "out", kill_at=kill_at)
    assert list(tmp_path.glob(".out.blocks/*.zip"))
    words += change(raw)
    for name in ("out", "whole"):
        done = run(*words, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))


def rewrite(path: Path, content: bytes) -> None:
    """Changes a file, whose size and times stay if the content has the old size."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_in(path: Path, old: str, new: str) -> None:
    content = path.read_bytes()
    assert old.encode() in content
    rewrite(path, content.replace(old.encode(), new.encode()))


def swap_lines(path: Path) -> None:
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    rewrite(path, b"".join([second, first, *others]))


def other_merges(bpe: Path) -> None:
    """GPT-2's BPE without its last 50 merges; its table of numbers stays."""
    lines = (bpe / "vocab.bpe").read_text(encoding="utf-8").splitlines(keepends=True)
    rewrite(bpe / "vocab.bpe", "".join(lines[:-50]).encode())
    names = ("encoder.json", "vocab.bpe", "dict.txt")
    (bpe / "SHA256SUMS").write_text("".join(f"{sha256_of(bpe / name)}  {name}\n" for name in names))


def other_rows(bpe: Path) -> None:
    """A dictionary of a sentencepiece model with other rows."""
    lines = (bpe / "dict.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    rewrite(bpe / "dict.txt", "".join(reversed(lines)).encode())


PIECES = "--bpe sentencepiece --bpe-dir bpe"
LEARNED = "--num-codes 20"
RESTARTS = {  # options of the run that is killed, where, the change, other options of the run after it
    "an input": (LEARNED, 13, lambda folder: replace_in(folder / "raw/valid.jsonl", "colours", "numbers"), ""),
    "the order of an input": (LEARNED, 9, lambda folder: swap_lines(folder / "raw/train.jsonl"), ""),
    "a splitter": (f"{LEARNED} --line-breaks space", 13, None, f"{LEARNED} --line-breaks sentences"),
    "the number of codes": (LEARNED, 20, None, "--num-codes 30"),
    "a tokenizer": (LEARNED, 13, None, f"{LEARNED} --source-tokenizer moses"),
    "a limit": (LEARNED, 25, None, f"{LEARNED} --limit 50"),
    "a sentencepiece model": (PIECES, 16, lambda folder: write_model(folder / "bpe", vocab_size=900), PIECES),
    "the dictionary of a sentencepiece model": (PIECES, 25, lambda folder: other_rows(folder / "bpe"), PIECES),
    "merges of GPT-2's BPE": ("--bpe gpt2 --bpe-dir gpt2", 16, lambda folder: other_merges(folder / "gpt2"), ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESTARTS)
@fault("Preprocessing", "kill -9, then another file of the BPE, input or option", "as a run from nothing")
def test_preprocessing_of_documents(name: str, run, tmp_path: Path) -> None:
    """The whole command on a folder of documents."""
    first, kill_at, change, then = RESTARTS[name]
    lines = "A remote with {0}\nred buttons (new). It has {0} colours, and costs {1} euros. Is that much?"
    for split, number in (("train", 150), ("valid", 60)):
        rows = [{"id": f"{split}{n}", "text": lines.format(n, n % 7), "target": f"{n} buttons."} for n in range(number)]
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    if first == PIECES:
        model = SentencePieceBpe(write_model(tmp_path / "bpe"))
        Dictionary.of(model.pieces()).save(tmp_path / "bpe/dict.txt")
    elif "gpt2" in first:
        write_byte_level_bpe(tmp_path / "gpt2")
    words = ["preprocess", "raw", "--splitter", "punctuation", "--out"]
    run(*words, "out", *first.split(), kill_at=kill_at, cwd=tmp_path)
    assert len(list(tmp_path.glob(".out.blocks/*.zip"))) == kill_at
    before = content(tmp_path)
    if change:
        change(tmp_path)
        assert content(tmp_path) != before
    for out in ("out", "whole"):
        done = run(*words, out, *(then or first).split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def other_weights(folder: Path) -> list[object]:
    """With the sizes and times of the old files."""
    model, times = folder / "model", {path: path.stat() for path in (folder / "model").rglob("*")}
    tensors = load_file(model / "model.safetensors")
    noise = torch.Generator().manual_seed(1)
    for tensor in tensors.values():
        if tensor.is_floating_point():
            tensor.add_(torch.randn(tensor.shape, generator=noise, dtype=torch.float32).to(tensor.dtype))
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    (model / "manifest.json").unlink()
    (model / "manifest.json").write_text(json.dumps(checksums_of(model), indent=1, ensure_ascii=False) + "\n")
    for path, status in times.items():
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return []


def other_documents(folder: Path) -> list[object]:
    path = folder / "in.jsonl"
    path.write_text(path.read_text().replace("remote", "control"))
    return []


def other_generation(folder: Path) -> list[object]:
    return ["--beam", 2, "--min-len", 7, "--max-len-b", 9]


@pytest.mark.slow
@pytest.mark.parametrize("change", [other_weights, other_documents, other_generation])
@fault(
    "Generation and prediction",
    "kill -9, then another model of the same sizes and times, input, option or source",
    "as a run from nothing",
)
def test_inference(change, run, tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "model")
    turns = [{"role": "PM", "text": f"so the remote has {n} buttons and costs {n * 5} euros."} for n in range(8)]
    rows = [{"id": str(n), "turns": turns[n % 4 : n % 4 + 3]} for n in range(6)]
    source = write_lines(tmp_path / "in.jsonl", rows)
    words, flag = ["generate", tmp_path / "model", source, "--device", "cpu", "--batch-size", 1], "--out"
    small = ["--beam", 2, "--min-len", 3, "--max-len-b", 9]
    run(*words, *small, flag, tmp_path / "out", kill_at=3)
    assert len(list(tmp_path.glob(".out.blocks/*.zip"))) == 3
    words += change(tmp_path) or small
    for name in ("out", "whole"):
        done = run(*words, flag, tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))
