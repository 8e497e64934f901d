"""fairseq's own tasks with `hierarchical_transformer`, on AMI meetings: masked LM, resumed, then classified."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from commands import USER_DIR, run_command

from hat_fairseq.register import register

register()  # the tests read checkpoints, whose types the plugin allows

ARCH = "--arch hierarchical_transformer_tiny --optimizer adam --lr 1e-3 --cpu --log-format json --log-interval 1 "
ARCH += "--num-workers 0 --no-epoch-checkpoints --seed 3 --batch-size 2"


def binarise(source: Path, out: Path, dictionary: Path | None) -> Path:
    """`source`.train and .valid, one sample a line, as fairseq keeps it."""
    words = ["--srcdict", dictionary] if dictionary else []
    splits = ["--trainpref", f"{source}.train", "--validpref", f"{source}.valid"]
    run_command("fairseq-preprocess", "--only-source", *splits, "--destdir", out, "--workers", 1, *words)
    return out


@pytest.fixture(scope="session")
def meetings(ami: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The meetings' encoded text, a `<s>` at every turn; the task itself adds the first one."""
    source = tmp_path_factory.mktemp("masked_lm") / "text"
    for split in ("train", "valid"):
        lines = (ami / f"text/{split}.source").read_text().splitlines()
        Path(f"{source}.{split}").write_text("".join(line.removeprefix("<s> ") + "\n" for line in lines))
    return binarise(source, source.parent / "bin", ami / "bin/dict.source.txt")


@pytest.fixture(scope="session")
def turns(ami: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Which role speaks: encoded text of a meeting and the role of its first turn."""
    folder = tmp_path_factory.mktemp("roles")
    for split in ("train", "valid"):
        lines = (ami / f"text/{split}.source").read_text().splitlines()
        roles = (ami / f"text/{split}.role").read_text().splitlines()
        (folder / f"input0.{split}").write_text("".join(line.removeprefix("<s> ") + "\n" for line in lines))
        (folder / f"label.{split}").write_text("".join(line.split()[0] + "\n" for line in roles))
    binarise(folder / "input0", folder / "bin/input0", ami / "bin/dict.source.txt")
    return binarise(folder / "label", folder / "bin/label", ami / "text/role.labels").parent


def logs(text: str, which: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in re.findall(rf"\| {which} \| (\{{.*?\}})", text)]


def pretrain(meetings: Path, save: Path, *flags: object) -> str:
    task = "--task masked_lm --criterion masked_lm --tokens-per-sample 128 --sample-break-mode complete_doc "
    task += "--max-segments 99 --segment-by marker"
    command = ["fairseq-train", meetings, "--user-dir", USER_DIR, *task.split(), *ARCH.split(), "--save-dir", save]
    result = run_command(*command, *flags)
    return result.stdout + result.stderr


@pytest.fixture(scope="session")
def pretrained(meetings: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    save = tmp_path_factory.mktemp("pretrained")
    return save / "checkpoint_last.pt", pretrain(meetings, save, "--max-update", 2)


def test_two_updates_of_masked_lm(pretrained: tuple[Path, str]) -> None:
    path, text = pretrained
    steps = logs(text, "train_inner")
    assert len(steps) == 2 and all(0 < float(step["loss"]) < 20 for step in steps)
    state = torch.load(path, weights_only=True)["model"]
    assert {"encoder.lm_head.bias", "encoder.layers.3.cross_segment.fc1.weight"} <= state.keys()


def test_a_run_with_checkpointed_activations_gives_the_same_losses(
    meetings: Path, pretrained: tuple[Path, str], tmp_path: Path
) -> None:
    text = pretrain(meetings, tmp_path, "--max-update", 2, "--checkpoint-activations", "--no-save")
    losses = [[step["loss"] for step in logs(log, "train_inner")] for log in (text, pretrained[1])]
    assert losses[0] == losses[1]


def test_fine_tuning_on_classification_starts_from_masked_lm(
    turns: Path, pretrained: tuple[Path, str], tmp_path: Path
) -> None:
    task = "--task sentence_prediction --criterion sentence_prediction --num-classes 4 --init-token 0 "
    task += "--max-positions 256 --max-segments 99 --segment-by marker --pooling attentive --max-update 2 "
    task += "--reset-optimizer --reset-dataloader --reset-meters "
    task += "--best-checkpoint-metric accuracy --maximize-best-checkpoint-metric"
    command = ["fairseq-train", turns, "--user-dir", USER_DIR, *task.split(), *ARCH.split(), "--save-dir", tmp_path]
    result = run_command(*command, "--restore-file", pretrained[0])
    text = result.stdout + result.stderr
    assert "encoder.lm_head: not in the model; left out 6 tensors of the checkpoint" in text
    assert "sentence_classification_head: newly initialised 7 tensors" in text
    assert len(logs(text, "train_inner")) == 2 and 0 <= float(logs(text, "valid")[0]["valid_accuracy"]) <= 100
    assert (tmp_path / "checkpoint_best.pt").exists()
