"""A resumed training equals an uninterrupted one, and heeds, names or refuses what has changed between the runs."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from commands import USER_DIR
from fine_tuned import MODELS, FineTuned
from trainings import assert_same_result, checkpoint, difference

ONE, WHOLE = ["--max-update", 1], ["--max-update", 5]  # three updates an epoch
QUIET = ["--disable-validation", "--optimizer", "adam", "--lr", "1e-2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ck"


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--bf16"],
        ["--fp16"],
        ["--memory-efficient-bf16"],
        ["--update-ordered-indices-seed", "--update-epoch-batch-itr", "True"],
    ],
    ids=lambda flags: flags[0],
)
def test_a_resumed_training_equals_an_uninterrupted_one(quick, folder: Path, tmp_path: Path, flags: list[str]) -> None:
    assert quick(tmp_path / "whole", *QUIET, *flags, *WHOLE)[0] == 0
    for number in (2, 4, 5):
        assert quick(folder, *QUIET, *flags, "--max-update", number)[0] == 0
    assert_same_result(folder, tmp_path / "whole")


@pytest.mark.slow
def test_weights_that_have_changed_since_are_not_those_of_the_optimizer(quick, folder: Path) -> None:
    """As those of a mean of checkpoints that fairseq made, which has the optimizer of one of them."""
    assert quick(folder, *QUIET, "--bf16", *ONE)[0] == 0
    state = checkpoint(folder)
    name = "encoder.layers.0.fc1.weight"
    state["model"][name] += 1
    torch.save(state, folder / "checkpoint_last.pt")
    changed = state["model"][name]
    assert quick(folder, *QUIET, "--bf16", "--max-update", 2)[0] == 0
    after = checkpoint(folder)["model"][name]
    assert (after.float() - changed.float()).abs().max() < 0.1


@pytest.mark.slow
@pytest.mark.fault(
    "Training", "resumed with another --weight-decay or --adam-betas", "they have effect, and are logged"
)
def test_settings_of_the_optimizer_have_effect(quick, folder: Path, tmp_path: Path) -> None:
    assert quick(folder, *QUIET, *ONE)[0] == 0
    shutil.copytree(folder, tmp_path / "same")
    quick(tmp_path / "same", *QUIET, "--max-update", 2)
    _, output = quick(folder, *QUIET, "--max-update", 2, "--weight-decay", 0.5)
    assert "weight_decay of the optimizer is 0.5, and was 0.0 in the checkpoint" in output
    assert "betas" not in "".join(re.findall("(.*) of the optimizer is", output))
    assert difference(checkpoint(folder)["model"], checkpoint(tmp_path / "same")["model"])
    (group,) = checkpoint(folder)["last_optimizer_state"]["param_groups"]
    assert group["weight_decay"] == 0.5


@pytest.mark.slow
@pytest.mark.fault("Training", "resumed without the state of the optimizer", "refused; names --finetune-from-model")
def test_without_the_state_of_the_optimizer(quick, folder: Path) -> None:
    assert quick(folder, *QUIET, *ONE, "--no-save-optimizer-state")[0] == 0
    status, output = quick(folder, *QUIET, "--max-update", 2)
    assert status == 1
    assert "it has no state of the optimizer" in output.splitlines()[-1]
    assert quick(folder, *QUIET, "--max-update", 2, "--reset-optimizer")[0] == 0


@pytest.mark.slow
def test_another_schedule_is_refused_in_a_line(quick, folder: Path) -> None:
    assert quick(folder, *QUIET, *ONE)[0] == 0
    flags = [*QUIET, "--max-update", 2, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 2]
    status, output = quick(folder, *flags)
    assert status == 1
    assert "--reset-lr-scheduler begins the schedule anew" in output.splitlines()[-1]
    assert "Traceback" not in output
    assert quick(folder, *flags, "--reset-lr-scheduler")[0] == 0


@pytest.mark.slow
@pytest.mark.fault(
    "Training", "--best-checkpoint-metric names no figure of the validation", "names them, after a checkpoint is saved"
)
def test_an_unknown_metric_loses_nothing(quick, folder: Path) -> None:
    status, output = quick(folder, "--max-update", 3, "--best-checkpoint-metric", "los")
    assert status == 1
    assert "Traceback" not in output
    assert "--best-checkpoint-metric los: the validation has no such figure, but loss, nll_loss, ppl;" in output
    assert checkpoint(folder)["optimizer_history"][-1]["num_updates"] == 3
    assert quick(folder, "--max-update", 6)[0] == 0
    assert (folder / "checkpoint_best.pt").exists()


@pytest.mark.slow
def test_the_best_figure_is_one_of_the_metric_and_of_the_data(quick, folder: Path, ami: Path, tmp_path: Path) -> None:
    assert quick(folder, "--max-epoch", 1)[0] == 0
    state = checkpoint(folder)
    state["extra_state"]["best"] = 0.0  # no later checkpoint is better
    torch.save(state, folder / "checkpoint_last.pt")
    others = [shutil.copytree(folder, tmp_path / name) for name in ("metric", "valid")]
    data = shutil.copytree(ami / "bin", tmp_path / "bin")
    path = data / "valid.source-target.source.bin"
    path.write_bytes(path.read_bytes()[:-4] + path.read_bytes()[:2] + path.read_bytes()[-2:])  # another word
    for save_dir in (folder, *others):
        (save_dir / "checkpoint_best.pt").unlink()
    _, same = quick(folder, "--max-epoch", 2)
    _, metric = quick(others[0], "--max-epoch", 2, "--best-checkpoint-metric", "nll_loss")
    _, valid = quick(others[1], "--max-epoch", 2, data=data)
    assert "among the new checkpoints alone" not in same
    assert not (folder / "checkpoint_best.pt").exists()
    assert "--best-checkpoint-metric is nll_loss, and was loss in the checkpoint" in metric
    assert f"the validation data in {data} differ from those of the checkpoint" in valid
    assert all((save_dir / "checkpoint_best.pt").exists() for save_dir in others)


@pytest.mark.slow
@pytest.mark.fault("Training", "resumed with other labels", "refused; names --finetune-from-model")
def test_other_labels_are_refused(fine_tuned: Callable[[str], FineTuned], warm, tmp_path: Path) -> None:
    model = fine_tuned("classification")
    save, data = tmp_path / "ck", shutil.copytree(model.data, tmp_path / "data") / "bin"
    save.mkdir()
    shutil.copy(model.checkpoint, save)
    (data.parent / "manifest.json").unlink()
    path = data / "label" / "dict.txt"
    first, rest = path.read_text().split(" ", 1)
    path.write_text(f"{first}x {rest}")
    flags = "--optimizer adam --lr 1e-2 --cpu --batch-size 4 --num-workers 0 --disable-validation --seed 3"
    words = f"{data} --task document_classification --user-dir {USER_DIR} {flags} {MODELS['classification']}".split()
    log = tmp_path / "log"
    status = warm.status(["fairseq_cli.train", *words, "--save-dir", str(save), "--max-update", "3"], tmp_path, log)
    assert status == 1
    assert "it has other labels, or in another order, than" in log.read_text().splitlines()[-1]
    begun = ["--finetune-from-model", str(model.checkpoint), "--save-dir", str(tmp_path / "new"), "--max-update", "1"]
    assert warm.status(["fairseq_cli.train", *words, *begun], tmp_path, log) == 0
