"""`hat look --training`: the curves of a real training, also of one that was killed and resumed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.analysis.curves import panels_of, read_history

FLAGS = ["--max-update", 5, "--save-interval-updates", 2, "--validate-interval-updates", 2]


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run of five updates, three an epoch, and what it has logged."""
    folder = tmp_path_factory.mktemp("run")
    return folder, train(folder, *FLAGS).stdout


def test_the_figures_are_those_of_the_log(trained: tuple[Path, str]) -> None:
    folder, log = trained
    curves = read_history(folder / "history.jsonl")
    for part in ("train_inner", "valid"):
        lines = [line.split(f"| {part} | ")[1] for line in log.splitlines() if f"| {part} | {{" in line]
        logged = [json.loads(line) for line in lines]
        prefix = "" if part == "train_inner" else "valid_"
        expected = [(int(each[f"{prefix}num_updates"]), float(each[f"{prefix}loss"])) for each in logged]
        assert expected and curves["loss"][part] == expected
    assert [update for update, _ in curves["lr"]["train_inner"]] == [1, 2, 3, 4, 5]
    names = [name for name, _ in panels_of(curves)]
    assert names[0] == "loss" and names[-1] == "lr" and not {"ppl", "wps"} & set(names), names
    assert list(dict(panels_of(curves))["loss"]) == ["train_inner", "valid"]


def test_a_picture(trained: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "run.png"
    assert cli.main(["look", "--training", str(trained[0]), "--png", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and f"wrote {picture}" in capsys.readouterr().out


def test_several_trainings_are_in_one_picture(trained: tuple[Path, str], tmp_path: Path) -> None:
    """Each one changes the picture, whichever comes last."""
    other = tmp_path / "other"
    other.mkdir()
    lines = [json.loads(line) for line in (trained[0] / "history.jsonl").open()]
    with (other / "history.jsonl").open("w") as file:
        file.writelines(json.dumps(line | {"loss": line.get("loss", 0) + 1, "rougeL": 9}) + "\n" for line in lines)
    pictures = []
    for number, runs in enumerate(([trained[0]], [other], [trained[0], other], [other, trained[0]])):
        words = [word for run in runs for word in ("--training", str(run))]
        assert cli.main(["look", *words, "--png", str(tmp_path / f"{number}.png")]) == 0
        pictures.append((tmp_path / f"{number}.png").read_bytes())
    assert len(set(pictures)) == 4


@pytest.mark.fault("Training", "killed while it writes history.jsonl, and resumed", "each update has one figure")
def test_a_killed_and_resumed_training(trained: tuple[Path, str], train, tmp_path: Path) -> None:
    """Killed in the middle of a line, after updates that no checkpoint has."""
    folder, history = tmp_path / "ck", tmp_path / "ck/history.jsonl"
    train(folder, *FLAGS, "--max-update", 2)
    record = json.loads(history.read_text().splitlines()[0]) | {"part": "train_inner"}
    with history.open("a") as file:
        for update in (3, 4):
            file.write(json.dumps(record | {"update": update, "loss": 999}) + "\n")
        file.write('{"part": "train_in')
    train(folder, *FLAGS)
    resumed, whole = (read_history(path / "history.jsonl") for path in (folder, trained[0]))
    for part in ("train_inner", "valid"):
        assert resumed["loss"][part] == whole["loss"][part]
    assert resumed["lr"]["train_inner"] == whole["lr"]["train_inner"]


@pytest.mark.skipif(any(map(find_spec, ("tensorboard", "tensorboardX", "wandb"))), reason="a tracker is installed")
def test_missing_trackers_are_one_line_each(train, tmp_path: Path) -> None:
    """fairseq says it again for each epoch and each validation."""
    flags = ["--max-epoch", 2, "--no-save", "--tensorboard-logdir", tmp_path / "runs", "--wandb-project", "mine"]
    result = train(tmp_path / "ck", *flags)
    lines = [line for line in (result.stdout + result.stderr).splitlines() if "install" in line and "WARN" in line]
    assert [line.split(" | ")[-1] for line in lines] == [
        f"--{flag} has no effect: {package} is not installed; pip install 'hat_fairseq[track]'"
        for flag, package in (("tensorboard-logdir", "tensorboard"), ("wandb-project", "wandb"))
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "history.jsonl is missing: it is written by fairseq-train"),
        ("", "history.jsonl is empty: the training has logged nothing yet"),
        ("[1]\n", "history.jsonl:1: no figures of a training: [1]"),
        ('{"part": "train", "update": 1}\n{"part": "train"}\n', "history.jsonl:2: no figures of a training"),
    ],
)
def test_without_figures(content: str | None, message: str, tmp_path: Path, capsys) -> None:
    if content is not None:
        (tmp_path / "history.jsonl").write_text(content)
    assert cli.main(["look", "--training", str(tmp_path), "--png", str(tmp_path / "a.png")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--training", "x", "--csv", "a.csv"], "--training draws with --png only: remove csv"),
        (["m.pt", "--training", "x", "--png", "a.png"], "--training draws with --png only: remove model"),
        (["--training", "x"], "say what to write"),
        (["--png", "a.png"], "give a model and --input"),
        (["m.pt", "--png", "a.png"], "give a model and --input"),
    ],
)
def test_flags_that_do_not_go_together(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["look", *words]) == 2 and message in capsys.readouterr().err
