"""fairseq-train with the plugin: resuming, precision, several processes, what is refused."""

import contextlib
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import TWO_PROCESSES
from fairseq.file_io import PathManager
from trainings import assert_same_result, checkpoint, losses

from hat_fairseq.fairseq_fixes.trust import CheckpointError
from hat_fairseq.kernels import AUTO, choose_precision, cpu_precisions

MULTIPLIES_BF16 = pytest.mark.skipif("bf16" not in cpu_precisions(), reason="this CPU does not multiply bf16")


@pytest.fixture(scope="module")
def uninterrupted(train, tmp_path_factory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("uninterrupted")
    return directory, train(directory, "--max-update", 8, "--disable-validation")


@pytest.mark.slow
def test_resume_is_exact_in_any_epoch(train, tmp_path: Path, uninterrupted) -> None:
    """Three updates an epoch, dropout on: stopped in epoch 1, in epoch 2 after a start in epoch 1, and at its end."""
    whole, result = uninterrupted
    save_often = ["--disable-validation", "--save-interval-updates", 1, "--keep-interval-updates", 1]
    parts = [train(tmp_path, "--max-update", stop, *save_often) for stop in (1, 5, 6, 8)]
    assert [loss for part in parts for loss in losses(part)] == losses(result)
    assert len(losses(result)) == 8
    assert_same_result(whole, tmp_path)


@pytest.mark.slow
def test_resume_is_exact_with_the_batches_of_the_first_epoch(train, tmp_path: Path) -> None:
    """As fairseq's own tasks have them; this flag removes the option of the plugin's."""
    flags = ["--rebuild-batches", "--disable-validation", "--save-interval-updates", 1, "--max-update"]
    whole, *parts = [train(tmp_path / name, *flags, stop) for name, stop in (("whole", 8), ("parts", 4), ("parts", 8))]
    assert [loss for part in parts for loss in losses(part)] == losses(whole)
    assert len(losses(whole)) == 8
    assert_same_result(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_resume_ignores_the_kernels_that_an_older_checkpoint_records(train, tmp_path: Path, uninterrupted) -> None:
    train(tmp_path, "--max-update", 4, "--disable-validation")
    state = checkpoint(tmp_path)
    state["extra_state"]["train_iterator"]["kernels"] = {"few_rows": "onednn", "many_rows": "mkl"}
    torch.save(state, tmp_path / "checkpoint_last.pt")
    train(tmp_path, "--max-update", 8, "--disable-validation")
    assert_same_result(uninterrupted[0], tmp_path)
    assert "kernels" not in checkpoint(tmp_path)["extra_state"]["train_iterator"]


BURSTS = "import random, time\nwhile True: time.sleep(random.random() / 50); sum(range(random.randrange(1000000)))"


@pytest.fixture
def busy() -> Iterator[None]:
    """A machine with one more process for each of its cores, which works in bursts."""
    command = [sys.executable, "-c", BURSTS]
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.kill)
        yield


@pytest.mark.slow
def test_one_seed_is_one_result_on_a_busy_machine(train, tmp_path: Path, busy) -> None:
    """To the last bit, with weights as large as those of real models."""
    flags = ["--encoder-ffn-embed-dim", 2048, "--decoder-ffn-embed-dim", 2048, "--disable-validation"]
    first, *others = [tmp_path / name for name in "abc"]
    for folder in (first, *others):
        train(folder, *flags, "--max-update", 1)
        assert_same_result(first, folder)


@pytest.mark.slow
def test_two_processes_equal_one_with_twice_the_batch(train, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOGLEVEL", "DEBUG")  # all settings are in the log
    flags = ["--max-update", 4, "--disable-validation", "--no-save", "--dropout", 0, "--batch-size", 1]
    one = train(tmp_path, *flags, "--update-freq", 2)
    two = train(tmp_path, *flags, launcher=[*TWO_PROCESSES[:-1], "train-and-show"])
    assert len(losses(one)) == 4
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)  # logs are rounded to three digits
    output = two.stdout + two.stderr
    assert output.count("process group at the end: False") == 2
    assert "'distributed_world_size': 2" in output
    assert "find_unused_parameters': False" in output


@pytest.mark.slow
def test_padding_does_not_change_the_loss(train, tmp_path: Path) -> None:
    """More padding, and on the other side, with roles as a parallel stream."""
    common = ["--max-update", 2, "--disable-validation", "--no-save", "--dropout", 0, "--batch-size", 6]
    padded = train(tmp_path, *common, "--left-pad-source", "--required-seq-len-multiple", 8)
    assert losses(padded) == pytest.approx(losses(train(tmp_path, *common)), abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--bf16", "--fp16", pytest.param("--amp", marks=MULTIPLIES_BF16)])
def test_reduced_precision_trains(train, tmp_path: Path, uninterrupted, flag: str) -> None:
    result = train(tmp_path, flag, "--max-update", 3, "--disable-validation", "--no-save")
    assert losses(result) == pytest.approx(losses(uninterrupted[1])[:3], rel=0.02)
    is_slower = flag == "--amp" and choose_precision(AUTO, "cpu") == "fp32"
    assert ("training takes longer than in fp32" in result.stdout + result.stderr) == is_slower


@pytest.mark.slow
@MULTIPLIES_BF16
def test_amp_on_a_cpu_keeps_weights_in_fp32_and_resumes_exactly(train, tmp_path: Path, uninterrupted) -> None:
    flags, results = ["--amp", "--disable-validation", "--max-update"], []
    for name, stop in (("whole", 6), ("parts", 2), ("parts", 6)):
        results.append(losses(train(tmp_path / name, *flags, stop)))
    assert [*results[1], *results[2]] == results[0] != losses(uninterrupted[1])[:6]
    assert_same_result(tmp_path / "whole", tmp_path / "parts")
    state = checkpoint(tmp_path / "whole")
    moments = [entry["exp_avg"] for entry in state["last_optimizer_state"]["state"].values()]
    assert {tensor.dtype for tensor in [*state["model"].values(), *moments] if tensor.is_floating_point()} == {
        torch.float32
    }


@pytest.mark.slow
@MULTIPLIES_BF16
def test_amp_leaves_out_an_update_whose_gradients_are_not_finite(train, tmp_path: Path) -> None:
    result = train(
        tmp_path, "--amp", "--max-update", 3, "--disable-validation", "--lr", 1e38, "--clip-norm", 0, check=False
    )
    assert "AMP: overflow detected" in result.stdout + result.stderr, result.stderr[-2000:]


def test_a_missing_restore_file_is_an_error(train, tmp_path: Path) -> None:
    result = train(tmp_path, "--restore-file", "bart.large/model.pt", "--reset-optimizer", check=False)
    assert result.returncode
    assert result.stderr.strip().endswith("--restore-file bart.large/model.pt does not exist")


def test_a_checkpoint_that_does_not_fit_is_refused_with_one_clear_line(train, tmp_path: Path, uninterrupted) -> None:
    state = checkpoint(uninterrupted[0])
    state["model"]["decoder.layers.0.fc1.extra"] = torch.zeros(2)
    torch.save(state, tmp_path / "bad.pt")
    result = train(tmp_path, "--restore-file", tmp_path / "bad.pt", check=False)
    assert result.returncode
    assert "unknown decoder.layers.0.fc1.extra [2]" in result.stderr.strip().splitlines()[-1], result.stderr[-2000:]


def copy_on_a_full_disk(folder: Path) -> None:
    """A limit of the size of files stops the copy half-way, as a full disk does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    with pytest.raises(CheckpointError) as raised:
        PathManager.copy(str(folder / "new.pt"), str(folder / "checkpoint_last.pt"), overwrite=True)
    (folder / "error").write_text(str(raised.value))


def test_checkpoint_copies_are_atomic(tmp_path: Path) -> None:
    """The old file must still be there, whole."""
    (tmp_path / "new.pt").write_bytes(b"n" * 300_000)
    (tmp_path / "checkpoint_last.pt").write_bytes(b"o" * 200_000)
    process = multiprocessing.get_context("fork").Process(target=copy_on_a_full_disk, args=(tmp_path,))
    process.start()
    process.join()
    assert "checkpoint_last.pt could not be written ([Errno 27] File" in (tmp_path / "error").read_text()
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == b"o" * 200_000


def last_line(result: Any) -> str:
    assert result.returncode == 1
    return result.stderr.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.fault("Training", "NaN or infinity", "names update and samples, exit 1")
def test_a_diverged_run_names_update_and_samples(train, tmp_path: Path, uninterrupted) -> None:
    folder = shutil.copytree(uninterrupted[0], tmp_path / "ck")  # of eight updates
    flags = ["--lr", 1e30, "--reset-lr-scheduler", "--max-update", 15, "--batch-size", 3, "--reset-dataloader"]
    result = train(folder, *flags, "--disable-validation", "--save-interval-updates", 1, check=False)
    line = last_line(result)
    update = re.search(r"FloatingPointError: update (\d+): [^;]*; sample ids \d, \d, \d; ", line)
    assert update, line
    assert int(update[1]) > 8, line
    state = checkpoint(folder)
    assert int(update[1]) == state["optimizer_history"][-1]["num_updates"] + 1


@pytest.mark.slow
@pytest.mark.fault("Checkpoints", "resumed with another --encoder-attention-heads or --activation-fn", "refused, named")
def test_weights_are_not_restored_into_another_function(train, tmp_path: Path, uninterrupted) -> None:
    """The architecture says 4 heads and leaves the activation to the default, relu."""
    shutil.copytree(uninterrupted[0], tmp_path, dirs_exist_ok=True)
    for flag, value, before in (("--encoder-attention-heads", 8, 4), ("--activation-fn", "gelu", "relu")):
        result = train(tmp_path, "--max-update", 9, "--disable-validation", flag, value, check=False)
        assert f"checkpoint_last.pt: trained with {flag} {before}, and this run has {value}" in last_line(result)


@pytest.mark.slow
@pytest.mark.fault(
    "Checkpoints",
    "pooled keys of the document, of an older version: resumed, or the start of another model",
    "refused, named",
)
@pytest.mark.parametrize("cells", ["document", None])
def test_pooled_keys_of_older_versions_are_not_resumed_as_others(train, tmp_path: Path, cells: str | None) -> None:
    flags = ["--encoder-attention", "pooling", "--max-source-positions", 128, "--disable-validation", "--max-update"]
    train(tmp_path, *flags, 1)
    state = checkpoint(tmp_path)
    del state["cfg"]["model"].settings_version
    if cells is not None:
        state["cfg"]["model"].pooling_cells = cells
    torch.save(state, tmp_path / "checkpoint_last.pt")
    start = ["--finetune-from-model", tmp_path / "checkpoint_last.pt"]
    for folder, more in ((tmp_path, []), (tmp_path / "new", start)):
        result = train(folder, *flags, 2, *more, check=False)
        line = last_line(result)
        assert f"{tmp_path}/checkpoint_last.pt: its pooled keys begin at multiples of the stride" in line
        assert result.returncode == 1
