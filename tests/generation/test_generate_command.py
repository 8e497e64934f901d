"""`hat generate`: shards, one that dies, going on from there, what is refused; fairseq-generate runs for real."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from commands import REPOSITORY, WITHOUT_LOCKS, run_command

from hat_fairseq import cli
from hat_fairseq.generation import resume
from hat_fairseq.generation.command import with_meta
from hat_fairseq.generation.resume import PartialResults, first_difference, named_flags
from hat_fairseq.inference.loading import load

FLAGS = "--role-stream role --max-source-positions 128 --beam 2 --min-len 20 --max-len-b 20 --cpu --num-workers 0"


@pytest.fixture(scope="module")
def checkpoint(train, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train(folder, "--max-update", 1, "--disable-validation")
    return folder / "checkpoint_last.pt"


@pytest.fixture
def generate(ami: Path, checkpoint: Path) -> Callable[..., int]:
    def run(results: Path, *flags: object) -> int:
        words = ["generate", ami / "bin", "--path", checkpoint, "--results-path", results, *FLAGS.split(), *flags]
        return cli.main([str(word) for word in words])

    return run


def rows(results: Path) -> list[dict]:
    return [json.loads(line) for line in (results / "test.jsonl").open()]


def children() -> list[int]:
    """Processes that this one has started and that run fairseq-generate."""
    pids = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = status.with_name("cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if parent == os.getpid() and b"fairseq_cli.generate" in command:
            pids.append(int(status.parent.name))
    return pids


def kill_a_shard_that_has_begun(results: Path, killed: list[Path]) -> None:
    """SIGKILL for the shard that prints the first text, as when a machine's memory is full."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for path in results.glob("test.parts/*/generate-test.txt"):
            if b"\nD-" not in path.read_bytes():
                continue
            for pid in children():
                if str(path.parent).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(path)
                    return  # the other shard may have begun as well
        time.sleep(0.005)


@pytest.mark.fault(
    "Generation and prediction", "kill -9 of a shard of hat generate", "exit 2; the next run generates the rest only"
)
def test_what_a_dead_shard_leaves_is_kept_and_only_the_rest_is_generated(generate, tmp_path, capsys) -> None:
    whole = tmp_path / "whole"
    assert generate(whole) == 0
    results, killed = tmp_path / "results", []
    thread = threading.Thread(target=kill_a_shard_that_has_begun, args=(results, killed))
    thread.start()
    status = generate(results, "--num-shards", 2, "--batch-size", 1, "--beam", 2)
    thread.join()
    captured = capsys.readouterr()
    assert status == 2 and killed and not (results / "test.jsonl").exists()
    assert captured.out.count("-P -m fairseq_cli.generate") == 3 and "--distributed-rank 1" in captured.out
    assert captured.err.splitlines()[-1].startswith("hat: error: 1 of 2 shards failed")
    assert "ended with -9; the end of " in captured.err

    parts = (results / "test.parts").glob("001.*/generate-test.txt")
    finished = sum(len(re.findall(rb"^D-.*\n", path.read_bytes(), re.MULTILINE)) for path in parts)
    assert 0 < finished < 6
    with killed[0].open("ab") as file:
        file.write(b"D-5\t-0.25\tHalf a li")  # what a kill in the middle of a line leaves
    assert generate(results, "--batch-size", 4, "--score", "rouge --bootstrap-samples 0") == 0
    output = capsys.readouterr().out
    (again,) = (results / "test.parts").glob("002.*/generate-test.txt")
    assert f"{finished} samples are finished, {6 - finished} are missing" in output
    assert again.read_bytes().count(b"\nD-") == 6 - finished
    assert rows(results) == rows(whole) and len(rows(whole)) == 6
    assert "rouge" in output.lower() and (results / "test.score.json").is_file()


@pytest.mark.slow
@pytest.mark.fault("Generation and prediction", "kill -9 of hat generate", "its shards end; the next run goes on")
def test_shards_end_with_the_command(generate, ami, checkpoint, tmp_path) -> None:
    assert generate(tmp_path / "whole") == 0
    results = tmp_path / "results"
    words = ["generate", ami / "bin", "--path", checkpoint, "--results-path", results, *FLAGS.split()]
    words += ["--batch-size", 1, "--num-shards", 2, "--num-workers", 1]  # with processes of the shards themselves
    with (tmp_path / "log").open("w") as log:
        command = [sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + 120
        while not any(b"\nD-" in path.read_bytes() for path in results.glob("test.parts/*/generate-test.txt")):
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert not (results / "test.jsonl").exists()
    assert generate(results) == 0
    assert rows(results) == rows(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.fault(
    "Several processes and machines", "hat generate: one machine is lost (kill -9)", "the others end; it goes on"
)
def test_machines_with_one_folder(ami, checkpoint, generate, tmp_path, capsys) -> None:
    assert generate(tmp_path / "whole") == 0
    results = tmp_path / "results"
    words = [sys.executable, "-m", "hat_fairseq.cli", "generate", ami / "bin", "--path", checkpoint, "--of", 2]
    words += ["--results-path", results, *FLAGS.split(), "--batch-size", 1, "--machine"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
    options = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    machines = [subprocess.Popen([*map(str, words), str(number)], **options) for number in (1, 2)]
    deadline = time.monotonic() + 120
    while not any(b"\nD-" in path.read_bytes() for path in results.glob("test.parts/2-*/generate-test.txt")):
        assert machines[1].poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    machines[1].kill()
    output = machines[0].communicate()[0]
    assert machines[0].returncode == 0, output
    assert "0 samples are finished, 3 are missing, 3 are of other machines" in output
    assert "machine 1 of 2 is done; " in output and not (results / "test.jsonl").exists()
    assert generate(results, "--machine", 2, "--of", 2, "--lenpen", 2) == 2
    assert generate(results, "--machine", 1, "--of", 3) == 2
    error = capsys.readouterr().err
    assert "no --lenpen, now it is --lenpen 2" in error and "--of 2, now it is --of 3" in error
    assert generate(results, "--machine", 2, "--of", 2) == 0
    assert rows(results) == rows(tmp_path / "whole")


@pytest.mark.fault(
    "Generation and prediction",
    "hat generate: other flags or another checkpoint than the texts that exist",
    "refused with the difference",
)
@pytest.mark.fault("Generation and prediction", "two hat generate with one --results-path", "the second is refused")
def test_a_finished_run_is_joined_again_and_nothing_else(generate, tmp_path, capsys, checkpoint, monkeypatch) -> None:
    monkeypatch.setattr(resume, "LONGEST_WAIT", 0.5)
    assert generate(tmp_path) == 0
    (tmp_path / "test.jsonl").unlink()
    capsys.readouterr()
    copy = tmp_path / "copy.pt"
    copy.write_bytes(checkpoint.read_bytes())  # another path and time, the same content
    assert generate(tmp_path, "--path", copy, "--batch-size", 1) == 0
    output = capsys.readouterr().out
    assert "all 6 samples are finished" in output and "fairseq_cli" not in output and len(rows(tmp_path)) == 6
    with copy.open("ab") as file:
        file.write(b"another model")
    for flags, difference in (
        (["--beam", 4], "--beam 2, now it is --beam 4"),
        (["--lenpen", 2], "no --lenpen, now it is --lenpen 2"),
        (["--path", copy], "another content of"),
    ):
        assert generate(tmp_path, *flags) == 2
        assert f"was made with {difference}" in capsys.readouterr().err
    with PartialResults.open(tmp_path / "test.parts", overwrite=False):
        assert generate(tmp_path) == 2
    assert "is in use by another hat generate" in capsys.readouterr().err


@pytest.mark.fault("Generation and prediction", "hat generate on a file system without locks", "a warning")
def test_no_locks(ami: Path, checkpoint: Path, tmp_path: Path) -> None:
    words = ["generate", ami / "bin", "--path", checkpoint, "--results-path", tmp_path, *FLAGS.split()]
    done = run_command(*WITHOUT_LOCKS, sys.executable, "-m", "hat_fairseq.cli", *words)
    assert done.stderr.startswith(f"{tmp_path}/test.parts: files cannot be locked (Function not implemented): ")
    assert done.stderr.count("locked") == 1 and len(rows(tmp_path)) == 6


@pytest.mark.fault(
    "Generation and prediction", "hat generate: no such split or checkpoint", "refused before generation"
)
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--gen-subset", "nosuch"], r"nosuch.ids is missing: .*one of its splits \(test, train, valid\)"),
        (["--path", "nosuch.pt"], "--path nosuch.pt does not exist"),
        (["--num-shards", 0], "--num-shards must be at least 1, not 0"),
        (["--nbest", 2], "--nbest cannot be given to hat generate"),
        (["--distributed-world-size", 2], "--distributed-world-size cannot be given"),
        (["--machine", 3, "--of", 2], "--machine M and --of N go together, and M is from 1 to N"),
        (["--machine", 1], "--machine M and --of N go together"),
        (["--machine", 1, "--of", 2, "--overwrite"], "--overwrite deletes what other machines write"),
    ],
)
def test_mistakes_are_known_at_once(generate, tmp_path, capsys, flags, message) -> None:
    assert generate(tmp_path / "results", *flags) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").glob("*/*.shard*"))


@pytest.mark.slow
@pytest.mark.fault(
    "Generation and prediction", "a precision that the device does not have", "refused before generation"
)
def test_reduced_precision_is_used_or_refused(generate, tmp_path, capsys) -> None:
    assert generate(tmp_path / "fp16", "--fp16") == 2
    assert "precision fp16 is GPU-only; on a CPU use bf16 or int8" in capsys.readouterr().err
    assert generate(tmp_path / "both", "--bf16", "--cpu-precision", "int8") == 2
    assert "choose one precision, not bf16 and int8" in capsys.readouterr().err
    assert not list(tmp_path.glob("*/*/*.shard*"))
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this CPU has no bf16")
    scores = []
    for number, flags in enumerate(([], ["--bf16"], ["--cpu-precision", "bf16"])):
        assert generate(tmp_path / str(number), *flags) == 0
        (path,) = (tmp_path / str(number) / "test.parts").glob("*/generate-test.txt")
        scores.append(re.findall(r"^H-\d+\t\S+", path.read_text(), re.MULTILINE))
    assert scores[1] == scores[2] != scores[0] and len(scores[0]) == 6


@pytest.mark.fault(
    "Generation and prediction", "hat generate: a mistake in the first try", "the corrected command is accepted"
)
def test_a_first_try_that_generates_nothing_decides_nothing(generate, tmp_path, capsys) -> None:
    assert generate(tmp_path, "--beem", 4) == 2
    assert "1 of 1 shards failed" in capsys.readouterr().err
    assert generate(tmp_path) == 0 and len(rows(tmp_path)) == 6
    assert generate(tmp_path, "--lenpen", 2) == 2
    assert "was made with no --lenpen, now it is --lenpen 2" in capsys.readouterr().err


@pytest.mark.fault("Generation and prediction", "a mistake in --score", "known before generation")
def test_a_wrong_score_is_known_before_generation(generate, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        generate(tmp_path / "results", "--score", "rouge --lke files2rouge")
    assert "--lke" in capsys.readouterr().err and not (tmp_path / "results").exists()


@pytest.mark.fault("Generation and prediction", "hat generate --overwrite on a foreign folder", "refused")
@pytest.mark.fault(
    "Generation and prediction", "--results-path has a SPLIT.jsonl that hat generate did not write", "refused"
)
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("test.parts/precious.txt", ["--overwrite"]),
        ("test.jsonl", []),
        ("test.jsonl", ["--overwrite"]),
        ("test.score.json", ["--score", "rouge"]),
    ],
)
def test_files_of_others_are_not_replaced(generate, tmp_path, capsys, name, flags) -> None:
    precious = tmp_path / name
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("mine")
    assert generate(tmp_path, *flags) == 2
    assert "was not written by hat generate" in capsys.readouterr().err and precious.read_text() == "mine"


def test_meta_is_carried_on_where_a_document_has_it(tmp_path) -> None:
    path, rows = tmp_path / "test.jsonl", [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]
    assert with_meta(rows, path) == rows
    records = [{"id": "a", "sentences": ["s"], "meta": {"n": 1}}, {"id": "b", "sentences": ["s"]}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert with_meta(rows, path) == [{"id": "a", "text": "x", "meta": {"n": 1}}, {"id": "b", "text": "y"}]


def test_flags_are_compared_by_their_last_value() -> None:
    assert named_flags(["--beam", "2", "--cpu", "--beam=4", "--lm", "a", "b"]) == {
        "--beam": ["4"],
        "--cpu": [],
        "--lm": ["a", "b"],
    }
    setup = {"data": {"test.bin": "1"}, "flags": {}, "checkpoints": []}
    assert first_difference(setup, setup) is None
    assert first_difference(setup, {**setup, "data": {"test.bin": "2"}}) == "other data: test.bin has changed"


@pytest.mark.slow
@pytest.mark.fault("Security", "a torch or fairseq folder in the current directory", "hat generate does not import it")
def test_packages_in_the_current_directory_are_not_imported(run, ami, checkpoint, tmp_path) -> None:
    """A fairseq checkout, or somebody else's folder with a torch in it."""
    for name in ("torch", "fairseq", "fairseq_cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the current directory')")
    words = [ami / "bin", "--path", checkpoint, "--results-path", tmp_path / "results", *FLAGS.split()]
    run("hat", "generate", *words, cwd=tmp_path)
    assert len(rows(tmp_path / "results")) == 6


def test_a_missing_tokenizer_for_bleu_is_known_before_generation(ami, checkpoint, tmp_path, capsys) -> None:
    if importlib.util.find_spec("MeCab"):
        pytest.skip("MeCab is installed")
    data = tmp_path / "data"
    shutil.copytree(ami, data)
    path = data / "bin/pipeline.json"
    path.write_text(path.read_text().replace('"target_language": "en"', '"target_language": "ja"'))
    flags = ["--path", checkpoint, "--results-path", tmp_path / "results", *FLAGS.split(), "--score", "bleu"]
    assert cli.main([str(word) for word in ["generate", data / "bin", *flags]]) == 2
    assert "needs the package sacrebleu[ja]" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.fault(
    "Generation and prediction", "data of other preprocessing than the training data", "refused with the setting"
)
def test_data_of_another_pipeline_is_refused_with_the_setting(ami, checkpoint, tmp_path, capsys) -> None:
    shutil.copytree(ami / "bin", tmp_path / "bin")
    path = tmp_path / "bin/pipeline.json"
    path.write_text(path.read_text().replace('"target_tokenizer": "none"', '"target_tokenizer": "moses"'))
    words = ["generate", path.parent, "--path", checkpoint, "--results-path", tmp_path / "results", *FLAGS.split()]
    assert cli.main([str(word) for word in words]) == 2
    error = "trained on data preprocessed with --target-tokenizer none, and .*bin was with --target-tokenizer moses"
    assert re.search(rf"hat_fairseq: error: {error}: preprocess with --vocabulary BIN", capsys.readouterr().err)
    with pytest.raises(ValueError, match=error):
        load(checkpoint, path.parent, "cpu")
    path.write_text(
        (ami / "bin/pipeline.json").read_text().replace('"max_target_tokens": 60', '"max_target_tokens": 5')
    )
    load(checkpoint, path.parent, "cpu")


@pytest.mark.fault("Generation and prediction", "--score for a test set without targets", "refused before generation")
def test_a_blind_test_set_is_generated_and_not_scored(ami, checkpoint, tmp_path, capsys) -> None:
    folder, data = tmp_path / "blind", tmp_path / "data"
    folder.mkdir()
    lines = [json.loads(line) for line in (ami / "text/test.jsonl").open()]
    without = [{name: value for name, value in line.items() if name != "target"} for line in lines]
    (folder / "test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in without))
    preprocess = ["preprocess", str(folder), "--out", str(data), "--vocabulary", str(ami / "bin")]
    assert cli.main(preprocess) == 0
    assert (data / "text/test.source").read_bytes() == (ami / "text/test.source").read_bytes()
    assert not list(data.glob("*/test*.target*"))
    words = ["generate", data / "bin", "--path", checkpoint, "--results-path", tmp_path / "out", *FLAGS.split()]
    command = [str(word) for word in words]
    capsys.readouterr()
    assert cli.main([*command, "--score", "rouge"]) == 2
    assert "has no targets, so the texts cannot be scored: leave out --score" in capsys.readouterr().err
    assert cli.main(command) == 0
    command[1], command[5] = str(ami / "bin"), str(tmp_path / "whole")
    assert cli.main(command) == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "whole") and len(rows(tmp_path / "out")) == 6

    without[2]["target"] = ["A target ."]
    (folder / "test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in without))
    assert cli.main([*preprocess, "--overwrite"]) == 2
    assert "has none; give all documents of a split target, or none" in capsys.readouterr().err
    (folder / "test.jsonl").rename(folder / "train.jsonl")
    assert cli.main([*preprocess, "--overwrite"]) == 2
    assert "has no target" in capsys.readouterr().err
