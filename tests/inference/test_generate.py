"""`hat generate`: workers, one that dies, going on from there, what is refused."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from commands import WITHOUT_LOCKS, environment, hat, read_lines, run_command, write_lines

from hat_fairseq import cli
from hat_fairseq.data.outputs import locked
from hat_fairseq.inference.loading import load
from hat_fairseq.register import register

register()  # the tests read checkpoints, whose types the plugin allows
FLAGS = "--beam 2 --min-len 20 --max-len-b 20 --device cpu"
AREA = "Generation and prediction"
SLOW_BATCHES = """
import itertools, sys, time
from hat_fairseq import cli
from hat_fairseq.inference.generate import Texts
compute, number = Texts.__call__, itertools.count()
def slow(self, documents):
    time.sleep(next(number) > 1)
    return compute(self, documents)
Texts.__call__ = slow
if __name__ == "__main__":
    sys.exit(cli.main())
"""


@pytest.fixture(scope="module")
def words(ami: Path, checkpoint: Path) -> list[str]:
    return ["generate", str(checkpoint), f"{ami}/bin", *FLAGS.split(), "--out"]


@pytest.fixture
def generate(words: list[str]) -> Callable[..., int]:
    return lambda results, *flags: cli.main([*words, f"{results}/test.jsonl", *map(str, flags)])


@pytest.fixture(scope="module")
def whole(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The texts of an undisturbed run in this process."""
    results = tmp_path_factory.mktemp("whole")
    assert cli.main([*words, str(results / "test.jsonl"), "--batch-size", "1"]) == 0
    return (results / "test.jsonl").read_bytes()


def rows(results: Path) -> list[dict]:
    return read_lines(results / "test.jsonl")


def slow_run(script: Path, words: list[str], *flags: object) -> subprocess.Popen[str]:
    """The command with a second for each batch after the first two of a process, which prints to a pipe."""
    script.write_text(SLOW_BATCHES)
    command = [sys.executable, str(script), *words, *map(str, flags), "--batch-size", "1"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(), text=True)


def saved(checkpoint: Path, path: Path, noise: float = 0.0) -> Path:
    """Writes a checkpoint anew, with other weights; its size does not depend on them."""
    state = torch.load(checkpoint, weights_only=True)
    for tensor in state["model"].values():
        if tensor.is_floating_point():
            tensor.add_(noise * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(tensor.numel())))
    with path.open("wb") as file:  # else its name would be in it
        torch.save(state, file)
    return path


def replace(path: Path, source: Path) -> None:
    """Replaces a file by a copy with the time of the old one."""
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    shutil.copy(source, copy := path.with_suffix(".new"))
    os.utime(copy, ns=times)
    copy.replace(path)


def finished(results: Path, process: subprocess.Popen[str], number: int) -> None:
    """Waits until so many batches are finished."""
    deadline = time.monotonic() + 120
    while len(list(results.glob(".test.jsonl.blocks/*.zip"))) < number:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.fault(AREA, "kill -9 of a worker of hat generate", "exit 2 with its documents; the next run does the rest")
@pytest.mark.fault(AREA, "kill -9 of hat generate", "its workers end; the next run resumes")
@pytest.mark.parametrize("victim", ["worker", "driver"])
def test_a_killed_run_goes_on(victim: str, words, generate, whole: bytes, tmp_path: Path, capfd) -> None:
    results = tmp_path / "results"
    process = slow_run(tmp_path / "slow.py", [*words, str(results / "test.jsonl")], "--workers", 2)
    finished(results, process, 2)
    workers = [each for each in psutil.Process(process.pid).children() if "spawn_main" in " ".join(each.cmdline())]
    assert len(workers) == 2
    (process if victim == "driver" else workers[0]).kill()
    error = process.communicate(timeout=120)[1]
    assert not (results / "test.jsonl").exists()
    assert not psutil.wait_procs(workers, timeout=120)[1]
    if victim == "worker":
        assert process.returncode == 2
        assert "finished batches are kept" in error
        assert re.search(r"hat: error: the batch of documents '\w+': a worker process was killed by signal 9", error)
    times = {path.name: path.stat().st_mtime_ns for path in results.glob(".test.jsonl.blocks/*.zip")}
    process = slow_run(tmp_path / "slow.py", [*words, str(results / "test.jsonl")])
    finished(results, process, len(times) + 1)
    now = {path.name: path.stat().st_mtime_ns for path in results.glob(".test.jsonl.blocks/*.zip")}
    assert now.items() > times.items()  # nothing is done again
    assert process.wait(timeout=120) == 0
    assert (results / "test.jsonl").read_bytes() == whole
    assert [*results.iterdir()] == [results / "test.jsonl"]


@pytest.mark.slow
@pytest.mark.fault(AREA, "SIGTERM to hat generate", "its workers end too, exit 143; the same command resumes")
def test_other_options_do_not_go_on_from_there(words, generate, tmp_path: Path) -> None:
    process = slow_run(tmp_path / "slow.py", [*words, str(tmp_path / "a" / "test.jsonl")])
    finished(tmp_path / "a", process, 2)
    process.send_signal(signal.SIGTERM)
    assert "finished batches are kept" in process.communicate(timeout=120)[1]
    assert process.returncode == 143
    flags = ["--batch-size", 1, "--min-len", 3, "--no-repeat-ngram-size", 2]
    assert generate(tmp_path / "a", *flags) == 0
    assert generate(tmp_path / "b", *flags) == 0
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


@pytest.mark.slow
@pytest.mark.parametrize("content", ["other", "same"])
@pytest.mark.fault(AREA, "a checkpoint is replaced while hat generate runs", "refused; no text of two models")
def test_a_checkpoint_that_changes(content: str, words, checkpoint: Path, tmp_path: Path) -> None:
    status = (copy := saved(checkpoint, tmp_path / "model.pt")).stat()
    command = [word if word != str(checkpoint) else str(copy) for word in words]
    process = slow_run(tmp_path / "slow.py", [*command, str(tmp_path / "out/test.jsonl")], "--workers", 2)
    while not (tmp_path / "out/.test.jsonl.blocks").exists():
        assert process.poll() is None
        time.sleep(0.01)
    replace(copy, saved(checkpoint, tmp_path / "other.pt", float(content == "other")))  # before it is loaded
    assert (copy.stat().st_size, copy.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    error = process.communicate(timeout=120)[1]
    if content == "same":
        assert process.returncode == 0
        assert len(rows(tmp_path / "out")) == 6
        return
    assert "model.pt or its data changed while the command ran" in error
    assert process.returncode == 2
    assert not (tmp_path / "out/test.jsonl").exists()


@pytest.mark.slow
@pytest.mark.fault(
    AREA, "another checkpoint of the same name, size and time after kill -9", "all is done anew: texts of one model"
)
def test_another_checkpoint_does_not_go_on(words, checkpoint: Path, tmp_path: Path) -> None:
    copy, other = (saved(checkpoint, tmp_path / f"{noise}.pt", noise) for noise in (0.0, 1.0))
    command = [word if word != str(checkpoint) else str(copy) for word in words]
    process = slow_run(tmp_path / "slow.py", [*command, str(tmp_path / "out/test.jsonl")])
    finished(tmp_path / "out", process, 2)
    process.kill()
    process.communicate()
    replace(copy, other)
    assert hat(*command, tmp_path / "out/test.jsonl", "--batch-size", 1) == 0
    assert hat(*command, tmp_path / "whole/test.jsonl", "--batch-size", 1) == 0
    assert (tmp_path / "out/test.jsonl").read_bytes() == (tmp_path / "whole/test.jsonl").read_bytes()


@pytest.mark.slow
@pytest.mark.fault(AREA, "a finished batch is damaged by a crash of the machine", "it is computed again")
def test_a_damaged_batch(words, generate, whole: bytes, tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("hat_fairseq.data.blocks.Blocks.remove", lambda self: None)
        assert generate(tmp_path, "--batch-size", 1) == 0
    archives = sorted(tmp_path.glob(".test.jsonl.blocks/*.zip"))
    content = archives[0].read_bytes()
    archives[0].write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    archives[1].write_bytes(b"")
    times = {path: path.stat().st_mtime_ns for path in archives}
    with monkeypatch.context() as patch:
        patch.setattr("hat_fairseq.data.blocks.Blocks.remove", lambda self: None)
        assert generate(tmp_path, "--batch-size", 1, "--overwrite") == 0
    assert [path.stat().st_mtime_ns != times[path] for path in archives] == [True, True, False, False, False, False]
    assert (tmp_path / "test.jsonl").read_bytes() == whole


@pytest.mark.slow
@pytest.mark.parametrize("engine", [["--workers", 2], ["--workers", 2, "--cluster", "local"]], ids=["local", "ray"])
@pytest.mark.usefixtures("private")  # the home of Ray's token
def test_texts_do_not_depend_on_the_workers(engine: list[object], generate, whole: bytes, tmp_path: Path) -> None:
    assert generate(tmp_path / "out", "--batch-size", 1, *engine) == 0
    assert (tmp_path / "out/test.jsonl").read_bytes() == whole


@pytest.mark.slow
def test_sampled_texts_do_not_depend_on_the_workers(generate, tmp_path: Path) -> None:
    flags = ["--sampling", "--beam", 1, "--batch-size", 2]
    assert generate(tmp_path / "a", *flags) == generate(tmp_path / "b", *flags, "--workers", 2) == 0
    assert generate(tmp_path / "c", *flags, "--seed", 2) == 0
    assert rows(tmp_path / "a") == rows(tmp_path / "b") != rows(tmp_path / "c")


@pytest.mark.slow
@pytest.mark.fault(AREA, "two hat generate with one --out", "the second is refused")
@pytest.mark.fault(AREA, "--out exists", "refused without --overwrite")
def test_results_are_replaced_on_request_only(generate, whole: bytes, tmp_path: Path, capsys) -> None:
    (folder := tmp_path / ".test.jsonl.blocks").mkdir()
    with locked(folder, ""):
        assert generate(tmp_path) == 2
    assert "another process is writing" in capsys.readouterr().err
    assert generate(tmp_path) == 0
    assert generate(tmp_path) == 2
    assert "test.jsonl exists" in capsys.readouterr().err
    assert generate(tmp_path, "--overwrite") == 0
    assert (tmp_path / "test.jsonl").read_bytes() == whole


@pytest.mark.fault(AREA, "--overwrite of a file of the data, or of a package", "refused in one line")
def test_results_replace_no_data(words, generate, ami: Path, tmp_path: Path, capsys) -> None:
    before = (ami / "text/test.jsonl").read_bytes()
    assert generate(ami / "text", "--overwrite") == 2
    assert f"{ami}/text/test.jsonl is in {ami}, which hat has written" in capsys.readouterr().err
    assert (ami / "text/test.jsonl").read_bytes() == before
    (tmp_path / "other").symlink_to(ami)
    score = tmp_path / "other/text/score.json"
    assert generate(tmp_path / "out") == 0
    files = [tmp_path / "out/test.jsonl", "--references", ami / "text/test.jsonl"]
    assert hat("score", "rouge", *files, "--out", score) == 2
    assert f"--out {score} is in {ami}, which hat has written" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.fault(AREA, "hat generate on a file system without locks", "a warning")
def test_no_locks(words, tmp_path: Path) -> None:
    done = run_command(*WITHOUT_LOCKS, sys.executable, "-m", "hat_fairseq.cli", *words, tmp_path / "test.jsonl")
    assert done.stderr.count("files cannot be locked (Function not implemented)") == 1
    assert len(rows(tmp_path)) == 6


@pytest.mark.fault(AREA, "hat generate: no such split or checkpoint", "refused before generation")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--split", "nosuch"], r"nosuch"),
        (["--workers", 0], "the number of workers must be from 1"),
        (["--beam", 0], "beam must be at least 1, not 0"),
        (["--no-repeat-ngram-size", 1], "use 2 or more"),
        (["--batch-size", 0], "--batch-size must be at least 1"),
        (["--precision", "fp16"], "precision fp16 is GPU-only; on this CPU use fp32"),
    ],
)
def test_mistakes_are_known_at_once(flags: list[Any], message: str, generate, tmp_path, capsys) -> None:
    assert generate(tmp_path / "results", *flags) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
@pytest.mark.fault("Security", "a torch or fairseq folder in the current directory", "hat generate does not import it")
def test_packages_in_the_current_directory_are_not_imported(words, tmp_path) -> None:
    """A fairseq checkout, or somebody else's folder with a torch in it."""
    for name in ("torch", "fairseq", "fairseq_cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the current directory')")
    run_command("hat", *words, tmp_path / "results/test.jsonl", "--workers", 2, cwd=tmp_path)
    assert len(rows(tmp_path / "results")) == 6


@pytest.mark.fault(AREA, "data of other preprocessing than the training data", "refused with the setting")
def test_data_of_another_pipeline_is_refused_with_the_setting(ami, checkpoint, words, tmp_path, capsys) -> None:
    path = Path(shutil.copytree(ami, tmp_path / "data"), "bin/pipeline.json")
    text = path.read_text()
    path.write_text(text.replace('"target_tokenizer": "none"', '"target_tokenizer": "moses"'))
    assert cli.main([*words[:2], str(path.parent), *words[3:], f"{tmp_path}/results/test.jsonl"]) == 2
    error = "trained on data preprocessed with --target-tokenizer none, and .*bin was with --target-tokenizer moses"
    assert re.search(f"{error}: preprocess with --vocabulary BIN", capsys.readouterr().err)
    path.write_text(text.replace('"max_target_tokens": 60', '"max_target_tokens": 5'))
    load(checkpoint, path.parent, "cpu")


def test_a_blind_test_set_is_generated(ami, words, tmp_path) -> None:
    rows_of_test = read_lines(ami / "text/test.jsonl")
    without = ({name: value for name, value in row.items() if name != "target"} for row in rows_of_test)
    write_lines(tmp_path / "blind/test.jsonl", without)
    data = tmp_path / "data"
    assert hat("preprocess", tmp_path / "blind", "--out", data, "--vocabulary", ami / "bin") == 0
    assert (data / "text/test.source").read_bytes() == (ami / "text/test.source").read_bytes()
    command = [*words[:2], f"{data}/bin", *words[3:]]
    assert cli.main([*command, f"{tmp_path}/out/test.jsonl"]) == cli.main([*words, f"{tmp_path}/whole/test.jsonl"]) == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
    assert len(rows(tmp_path / "out")) == 6
