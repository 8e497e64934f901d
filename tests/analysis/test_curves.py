"""`hat look --training`: the curves of a real training, also of one that was killed and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.analysis.curves import panels_of, read_log

FLAGS = ["--max-update", 5, "--save-interval-updates", 2, "--validate-interval-updates", 2]
LOG = "train.log"


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run of five updates, three an epoch, and what it has logged."""
    folder = tmp_path_factory.mktemp("run") / "run"
    return folder, train(folder, *FLAGS, "--log-file", folder / LOG).stdout


def test_the_figures_are_those_of_the_log(trained: tuple[Path, str]) -> None:
    folder, log = trained
    curves = read_log(folder)
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
    log = (trained[0] / LOG).read_text()
    (other / LOG).write_text(log.replace('"loss": "', '"loss": "1') + '{"num_updates": "6", "rougeL": "9"}\n')
    pictures = []
    for number, runs in enumerate(([trained[0]], [other], [trained[0], other], [other, trained[0]])):
        words = [word for run in runs for word in ("--training", str(run))]
        assert cli.main(["look", *words, "--png", str(tmp_path / f"{number}.png")]) == 0
        pictures.append((tmp_path / f"{number}.png").read_bytes())
    assert len(set(pictures)) == 4


@pytest.mark.fault("Training", "killed while it writes its log, and resumed", "each update has one figure in curves")
def test_a_killed_and_resumed_training(trained: tuple[Path, str], train, tmp_path: Path) -> None:
    """Killed in the middle of a line, after updates that no checkpoint has."""
    folder, log = tmp_path / "ck", tmp_path / "ck" / LOG
    train(folder, *FLAGS, "--log-file", log, "--max-update", 2)
    line = next(line for line in log.read_text().splitlines() if '"num_updates": "2"' in line)
    with log.open("a") as file:
        for update in (3, 4):
            file.write(json.dumps(json.loads(line) | {"num_updates": str(update), "loss": "999"}) + "\n")
        file.write(line[:20])
    train(folder, *FLAGS, "--log-file", log)
    resumed, whole = read_log(log), read_log(trained[0])
    for part in ("train_inner", "valid"):
        assert resumed["loss"][part] == whole["loss"][part]
    assert resumed["lr"]["train_inner"] == whole["lr"]["train_inner"]
    lines = [line for line in log.read_text().splitlines() if '"valid_loss"' in line]
    assert len(lines) == len(set(lines))  # in fairseq alone a line is written once for each epoch


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "train.log is missing: train with --log-format json --log-file "),
        ("", "train.log has no figures: train with --log-format json --log-file "),
        ('[1]\n{"num_updates": []}\n{"num_updates": "NaN"}\n{"a": 1}\n{"num_up', "train.log has no figures"),
    ],
)
def test_without_figures(content: str | None, message: str, tmp_path: Path, capsys) -> None:
    if content is not None:
        (tmp_path / LOG).write_text(content)
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
