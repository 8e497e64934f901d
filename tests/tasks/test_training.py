"""fairseq-train with the plugin: resuming, precision, several processes, bad checkpoints."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import TWO_PROCESSES

from hat_fairseq.register import register

register()  # the tests read checkpoints, whose types the plugin allows

CURVE = re.compile(r"train_inner \| (\{.*?\})")


def losses(result: Any) -> list[float]:
    logs = [json.loads(match) for match in CURVE.findall(result.stdout + result.stderr)]
    return [float(log["loss"]) for log in logs]


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return torch.load(directory / "checkpoint_last.pt", weights_only=True)["model"]


def largest_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in one)


@pytest.fixture(scope="module")
def uninterrupted(train, tmp_path_factory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("uninterrupted")
    return directory, train(directory, "--max-update", 8, "--disable-validation")


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_resume_is_exact_in_any_epoch(train, tmp_path: Path, uninterrupted, stop: int) -> None:
    """Three updates an epoch, dropout on: stopped in epoch 1, at the end of it, and in the middle of epoch 2."""
    whole, result = uninterrupted
    save_often = ["--disable-validation", "--save-interval-updates", 1, "--keep-interval-updates", 1]
    first = train(tmp_path, "--max-update", stop, *save_often)
    second = train(tmp_path, "--max-update", 8, *save_often)
    assert losses(first) + losses(second) == losses(result)
    assert len(losses(result)) == 8
    assert largest_difference(weights(whole), weights(tmp_path)) == 0.0


SHOWS_THE_END = """
import atexit, runpy, torch
atexit.register(lambda: print(f"process group at the end: {torch.distributed.is_initialized()}"))
runpy.run_module("fairseq_cli.train", run_name="__main__", alter_sys=True)
"""


def test_two_processes_equal_one_with_twice_the_batch(train, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOGLEVEL", "DEBUG")  # all settings are in the log
    flags = ["--max-update", 4, "--disable-validation", "--no-save", "--dropout", 0, "--batch-size", 1]
    one = train(tmp_path, *flags, "--update-freq", 2)
    two = train(tmp_path, *flags, launcher=[*TWO_PROCESSES[:-2], "--no-python", sys.executable, "-c", SHOWS_THE_END])
    assert len(losses(one)) == 4
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)  # logs are rounded to three digits
    output = two.stdout + two.stderr
    assert output.count("process group at the end: False") == 2
    assert "'distributed_world_size': 2" in output and "find_unused_parameters': False" in output


def test_several_cpu_processes_need_torchrun(train, tmp_path: Path) -> None:
    flags = ["--max-update", 1, "--disable-validation", "--no-save", "--distributed-world-size", 2]
    refused = train(tmp_path, *flags, check=False)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert refused.stderr.strip().endswith("or start 2 processes by torchrun or Slurm")


@pytest.mark.slow
def test_processes_with_explicit_ranks_work_together(train, tmp_path: Path) -> None:
    flags = ["--max-update", 1, "--disable-validation", "--no-save", "--distributed-world-size", 2]
    flags += ["--distributed-init-method", f"file://{tmp_path}/rendezvous", "--distributed-no-spawn"]
    with ThreadPoolExecutor() as pool:
        command = partial(train, tmp_path, *flags, launcher=["fairseq-train"])
        ranks = [pool.submit(command, "--distributed-rank", rank) for rank in range(2)]
    assert len(losses(ranks[0].result())) == 1 and ranks[1].result().returncode == 0


PADDING = [["--left-pad-source"], ["--required-seq-len-multiple", 8]]


@pytest.mark.parametrize("flags", PADDING, ids=lambda flags: flags[0])
def test_padding_does_not_change_the_loss(train, tmp_path: Path, flags: list[object]) -> None:
    """More padding, or padding on the other side, with roles as a parallel stream."""
    common = ["--max-update", 2, "--disable-validation", "--no-save", "--dropout", 0, "--batch-size", 6]
    assert losses(train(tmp_path, *common, *flags)) == pytest.approx(losses(train(tmp_path, *common)), abs=2e-3)


@pytest.mark.parametrize(
    "flags",
    [["--bf16"], ["--memory-efficient-bf16"], ["--fp16", "--fp16-no-flatten-grads"]],
    ids=lambda flags: flags[0],
)
def test_reduced_precision_trains(train, tmp_path: Path, uninterrupted, flags: list[str]) -> None:
    result = train(tmp_path, *flags, "--max-update", 3, "--disable-validation", "--no-save")
    assert losses(result) == pytest.approx(losses(uninterrupted[1])[:3], rel=0.02)


def test_a_missing_restore_file_is_an_error(train, tmp_path: Path) -> None:
    result = train(tmp_path, "--restore-file", "bart.large/model.pt", "--reset-optimizer", check=False)
    assert result.returncode
    assert result.stderr.strip().endswith("--restore-file bart.large/model.pt does not exist")


class Malicious:
    def __reduce__(self) -> tuple:
        return os.system, ("touch executed",)


@pytest.mark.parametrize("content", ["executable", "truncated", "other tensors"])
def test_a_bad_checkpoint_is_refused_with_one_clear_line(train, tmp_path: Path, uninterrupted, content: str) -> None:
    good = uninterrupted[0] / "checkpoint_last.pt"
    bad = tmp_path / "bad.pt"
    if content == "executable":
        torch.save({"model": {}, "args": Malicious()}, bad)
        expected = r"bad.pt: refused, because it holds more than tensors and settings \(posix.system\)"
    elif content == "truncated":
        bad.write_bytes(good.read_bytes()[:10_000])
        expected = r"bad.pt: not a complete checkpoint \(10000 bytes\)"
    else:
        state = torch.load(good, weights_only=True)
        state["model"]["decoder.layers.0.fc1.extra"] = torch.zeros(2)
        torch.save(state, bad)
        expected = r"unknown decoder.layers.0.fc1.extra \[2\]"
    result = train(tmp_path, "--restore-file", bad, check=False, cwd=tmp_path)
    assert result.returncode
    assert re.search(expected, result.stderr.strip().splitlines()[-1]), result.stderr[-2000:]
    assert not (tmp_path / "executed").exists()


def test_checkpoint_copies_are_atomic(run, tmp_path: Path) -> None:
    """A file size limit stops the copy half-way, as a full disk does: the old file must still be there, whole."""
    (tmp_path / "new.pt").write_bytes(b"n" * 300_000)
    (tmp_path / "checkpoint_last.pt").write_bytes(b"o" * 200_000)
    script = """
import resource, signal
import hat_fairseq.fairseq_fixes
hat_fairseq.fairseq_fixes.apply()
from fairseq.file_io import PathManager
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
PathManager.copy("new.pt", "checkpoint_last.pt", overwrite=True)
"""
    result = run(sys.executable, "-c", script, cwd=tmp_path, check=False)
    assert result.returncode == 1 and "checkpoint_last.pt could not be written ([Errno 27] File" in result.stderr
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == b"o" * 200_000


def test_masks_are_fresh_in_every_epoch_with_workers(ami: Path) -> None:
    """With fairseq's own setting the workers keep the first epoch's masks."""
    from fairseq.data import MaskTokensDataset, NestedDictionaryDataset, RightPadDataset, data_utils

    from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask

    task = DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(ami / "bin")))
    words = task.source_dictionary
    words.add_symbol("<mask>")
    source = data_utils.load_indexed_dataset(str(ami / "bin/train.source-target.source"), words)
    masked = MaskTokensDataset(source, words, pad_idx=words.pad(), mask_idx=words.index("<mask>"), seed=1)
    dataset = NestedDictionaryDataset({"tokens": RightPadDataset(masked, words.pad())}, sizes=[source.sizes])
    iterator = task.get_batch_iterator(dataset, max_sentences=6, num_workers=1)
    epochs = [next(iter(iterator.next_epoch_itr(shuffle=False)))["tokens"].clone() for _ in range(2)]
    assert (epochs[0] == words.index("<mask>")).any()
    assert not torch.equal(epochs[0], epochs[1])


def test_options_that_nothing_would_read_are_refused(ami: Path) -> None:
    from argparse import Namespace

    from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask

    def task(**options: Any) -> DocumentToTextTask:
        return DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(ami / "bin"), **options))

    for option in ("load_alignments", "left_pad_target"):
        with pytest.raises(ValueError, match=f"--{option.replace('_', '-')} is not supported"):
            task(**{option: True})
    with pytest.raises(ValueError, match="--print-alignment is not supported"):
        task().build_generator([], Namespace(print_alignment="hard"))


def test_the_plugin_can_be_imported_twice_and_pickles_stay_refused(run, tmp_path: Path) -> None:
    (tmp_path / "object.pt").write_bytes(pickle.dumps(Malicious()))
    script = """
import importlib, sys, torch, fairseq.options, hat_fairseq.fairseq_fixes
before = fairseq.options.parse_args_and_arch
importlib.reload(hat_fairseq)
hat_fairseq.fairseq_fixes.apply()
assert fairseq.options.parse_args_and_arch is before
try:
    torch.load("object.pt")
except Exception as error:
    print(type(error).__name__)
"""
    assert run(sys.executable, "-c", script, cwd=tmp_path).stdout.strip().endswith("UnpicklingError")
