"""Faults around generation and prediction: damaged data, options that would drop documents, signals; real commands."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import HEEDING, USER_DIR, environment, hat, read_lines, refusal, write_lines
from fine_tuned import FineTuned
from warm import WarmPython

from hat_fairseq.register import register

register()

fault = pytest.mark.fault
DATA, AREA = "Preprocessed data", "Generation and prediction"
AGAIN = "run hat preprocess again"
MODEL = "--role-stream role --cpu --num-workers 0 --max-source-positions"
TRAIN = "--arch hat_transformer_tiny --criterion chunked_label_smoothed_cross_entropy --optimizer adam --save-dir"


@pytest.fixture
def data(ami: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ami, tmp_path / "data"))


@pytest.fixture
def error_of(warm: WarmPython, tmp_path: Path) -> Callable[..., str]:
    """The last line of a fairseq command that fails."""

    def run(line: str, positions: int = 128) -> str:
        line += " --batch-size 2 --disable-validation" if ".train" in line else ""
        words = f"{line} --user-dir {USER_DIR} --task document_to_text {MODEL} {positions}".split()
        with pytest.raises(AssertionError) as failure:
            warm.run(words, tmp_path, tmp_path / "log")
        return str(failure.value).splitlines()[-1]

    return run


def damage(path: Path, how: str) -> str:
    """Damages a file; returns what an error says of it."""
    size = path.stat().st_size
    if how == "missing":
        path.unlink()
        return f"{path} is missing; {AGAIN}"
    os.truncate(path, size - 10)
    return f"{path} has {size - 10} bytes instead of {size}: damaged; {AGAIN}"


@pytest.mark.slow
@fault(DATA, "a .bin or .idx of a source, target or role stream is missing", "named by every command")
@fault(DATA, "a .bin or .idx is truncated", "named with both sizes by every command")
@pytest.mark.parametrize(
    ("name", "how", "manifest"),
    [
        ("source-target.source.bin", "cut", True),
        ("source-target.target.idx", "missing", False),
        ("role-None.role.bin", "missing", True),
    ],
)
def test_damaged_data(name: str, how: str, manifest: bool, data: Path, checkpoint: Path, error_of, tmp_path) -> None:
    if not manifest:
        (data / "manifest.json").unlink()
    expected = damage(data / f"bin/train.{name}", how)
    assert error_of(f"fairseq_cli.train {data}/bin {TRAIN} {tmp_path}").endswith(f": {expected}")
    expected = damage(data / f"bin/test.{name}", how)
    assert error_of(f"fairseq_cli.generate {data}/bin --path {checkpoint}").endswith(f": {expected}")
    if manifest:
        error = refusal("generate", checkpoint, data, "--out", tmp_path / "out/test.jsonl")
        assert error == f"hat: error: {expected}\n"
        assert not (tmp_path / "out").exists()


@fault(DATA, "training data without its targets", "refused before training")
@fault(DATA, "the ids of a split are edited", "hat generate refuses")
def test_changed_data(data: Path, checkpoint: Path, error_of, tmp_path: Path) -> None:
    path = data / "bin/test.ids"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    error = refusal("generate", checkpoint, data, "--out", tmp_path / "out/test.jsonl")
    assert f"{path} has changed since manifest.json was written; {AGAIN}" in error
    (data / "manifest.json").unlink()
    for path in data.glob("bin/train.*.target.*"):
        path.unlink()
    error = error_of(f"fairseq_cli.train {data}/bin {TRAIN} {tmp_path}")
    assert error.endswith(f"the split train has no targets to train on; {AGAIN}")


@pytest.mark.slow
@fault(DATA, "the content of a .bin is damaged, not its size", "named before training, up to 1 GB")
@fault(DATA, "a .bin has an id that is not in the dictionary", "named before training, without a manifest, too")
def test_changed_bytes(data: Path, error_of, tmp_path: Path) -> None:
    path = data / "bin/train.source-target.target.bin"
    content, line = path.read_bytes(), f"fairseq_cli.train {data}/bin {TRAIN} {tmp_path} --max-update 1"
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    error = error_of(line)
    assert error.endswith(f": {path} has changed since manifest.json was written; {AGAIN}")
    (data / "manifest.json").unlink()
    path.write_bytes(b"\xff\xff" + content[2:])
    last = len((data / "bin/dict.target.txt").read_text().splitlines()) + 3
    error = error_of(line)
    expected = f"{path} has the id 65535, and the dictionary ends at {last}: damaged, or of another dictionary; {AGAIN}"
    assert error.endswith(f": {expected}")


@fault(DATA, "training on rows without a sentence marker", "a warning")
def test_no_markers(data: Path, warm: WarmPython, tmp_path: Path) -> None:
    (data / "manifest.json").unlink()
    path = data / "bin/train.source-target.source.bin"
    tokens = np.fromfile(path, np.uint16)
    np.where(tokens == 0, 5, tokens).astype(np.uint16).tofile(path)
    line = (
        f"fairseq_cli.train {data}/bin {TRAIN} {tmp_path} --max-update 1 --batch-size 2 --disable-validation --no-save"
    )
    words = f"{line} --task document_to_text --user-dir {USER_DIR} {MODEL} 128".split()
    assert "train: no sentence has a marker <s>" in warm.run(words, tmp_path, tmp_path / "log")


@fault(DATA, "`hat doctor DIR`: files that changed, are missing, or are not of hat preprocess", "each is named")
def test_doctor_names_each_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hat("doctor", data / "bin") == 0
    assert "0 problems" in capsys.readouterr().out
    path = data / "text/train.source"
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    (data / "text/valid.source").unlink()
    (data / "bin/mine.pt").touch()
    assert hat("doctor", data) == 2
    problems = "bin/mine.pt is not in manifest.json", "text/train.source has changed since manifest.json was written"
    expected = [f"{data}/{problem}" for problem in (*problems, "text/valid.source is missing")]
    assert capsys.readouterr().err.splitlines() == expected
    (data / "manifest.json").unlink()
    assert hat("doctor", data) == 2
    assert "manifest.json cannot be read" in capsys.readouterr().err


@pytest.fixture(scope="module")
def classifier(fine_tuned: Callable[[str], FineTuned], tmp_path_factory: pytest.TempPathFactory) -> FineTuned:
    """With data that have a manifest of everything."""
    made, out = fine_tuned("classification"), tmp_path_factory.mktemp("labelled") / "data"
    assert hat("preprocess", made.raw, "--kind", "classification", "--out", out, "--num-codes", 200) == 0
    return FineTuned(made.kind, made.raw, out, made.checkpoint)


@fault(DATA, "hat predict: rows, labels or ids that are damaged or missing", "named before the model is loaded")
@pytest.mark.parametrize("name", ["input0/test.bin", "label/test.idx", "test.ids"])
@pytest.mark.parametrize("how", ["cut", "missing"])
def test_damaged_labelled_data(how: str, name: str, classifier: FineTuned, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(classifier.data, tmp_path / "data"))
    expected = damage(folder / "bin" / name, how)
    words = ["predict", classifier.checkpoint, folder, "--out", tmp_path / "out.jsonl"]
    assert refusal(*words, "--device", "cpu") == f"hat: error: {expected}\n"


@pytest.mark.slow
@fault(AREA, "--skip-invalid-size-inputs-valid-test, which would drop documents", "refused")
@fault(AREA, "documents longer than the model, and a higher --max-source-positions", "refused, with the way out")
@fault(AREA, "fairseq-generate without --task", "all documents are generated")
def test_no_document_is_dropped(data: Path, checkpoint: Path, train, warm: WarmPython, error_of, tmp_path) -> None:
    skip = "--skip-invalid-size-inputs-valid-test"
    pipeline = data / "bin/pipeline.json"
    pipeline.write_text(pipeline.read_text().replace('"max_source_tokens": 121', '"max_source_tokens": null'))
    row = {"id": "long", "turns": [{"role": "PM", "text": "so we go on"}] * 60, "target": "we go"}
    write_lines(tmp_path / "long/test.jsonl", [row])
    assert hat("preprocess", tmp_path / "long", "--out", tmp_path / "out", "--vocabulary", data / "bin") == 0
    error = error_of(f"fairseq_cli.generate {tmp_path}/out/bin --path {checkpoint} {skip}", positions=5000)
    assert "1 of 1 samples are longer than the model takes" in error
    assert "preprocess with --max-source-tokens" in error
    train(tmp_path / "model", "--max-update", 1, "--disable-validation", "--role-stream=", data=data / "bin")
    line = f"fairseq_cli.generate {data}/bin --path {tmp_path}/model/checkpoint_last.pt --user-dir {USER_DIR} --cpu"
    assert warm.run(f"{line} --max-len-b 5".split(), tmp_path, tmp_path / "log").count("\nH-") == 6


@fault(AREA, "hat generate, hat predict: input without text", "named by id and line; --on-empty keep keeps its place")
def test_empty_documents(classifier: FineTuned, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_lines(classifier.raw / "test.jsonl")
    rows.insert(1, {"id": "empty", "segments": [" "], "meta": {"n": 1}})
    path, out = write_lines(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    words = ["predict", classifier.checkpoint, path, "--data", classifier.data / "bin"]
    words += ["--out", out, "--device", "cpu"]
    assert f"document 'empty' ({path}:2)" in (error := refusal(*words))
    assert "--on-empty keep" in error
    assert not out.exists()
    assert hat(*words, "--on-empty", "keep") == 0
    written = read_lines(out)
    assert [row["id"] for row in written] == [row["id"] for row in rows]
    assert written[1] == {"id": "empty", "empty": True, "meta": {"n": 1}}
    assert f"1 of {len(rows)} documents have no text" in capsys.readouterr().err


@pytest.mark.slow
@fault(AREA, "the disk of the results is full", "refused with its name")
def test_a_full_disk(ami: Path, checkpoint: Path, tmp_path: Path) -> None:
    words = ["generate", checkpoint, ami, "--max-len-b", 5, "--device", "cpu", "--out"]
    command = [sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    script = 'mkdir disk; mount -t tmpfs -o size=64k none disk || exit 77; exec "$@"'
    line = ["unshare", "--mount", "bash", "-c", script, "bash", *command, "disk/test.jsonl"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=120)
    if done.returncode in (1, 77):
        pytest.skip("mounting is not allowed")
    message = "the disk has 0.1 MB left, and about 1.0 MB are needed\n"
    assert done.returncode == 2
    assert done.stderr.startswith("hat: error: disk")
    assert done.stderr.endswith(message)


@pytest.mark.slow
@fault(AREA, "Ctrl-C with two workers", "exit 130, finished batches and nothing else are left")
def test_an_interrupted_run_leaves_no_semaphore(tmp_path: Path) -> None:
    turns = [{"role": "PM", "text": "so the remote has six buttons and costs five euros."}] * 12
    source = write_lines(tmp_path / "in.jsonl", ({"id": str(n), "turns": turns} for n in range(400)))
    words = ["generate", "demo", source, "--out", tmp_path / "out.jsonl", "--workers", 2]
    words += ["--batch-size", 1, "--device", "cpu", "--sampling"]  # fairseq, which has a lock
    command = [*HEEDING, sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path, start_new_session=True
    )
    while not list(tmp_path.glob(".out.jsonl.blocks/*.zip")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert error.endswith("hat: interrupted\n")
    assert "semaphore" not in error
