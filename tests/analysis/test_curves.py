"""`hat curves`: the curves of a real training, also of one that was killed and resumed."""

import json
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.analysis.curves import read_log

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
        expected = {int(each[f"{prefix}num_updates"]): float(each[f"{prefix}loss"]) for each in logged}
        assert expected and curves["loss"][part] == expected
    assert list(curves["lr"]["train_inner"]) == [1, 2, 3, 4, 5] and not {"ppl", "wps"} & set(curves)


@pytest.mark.slow
def test_runs_in_one_picture(
    trained: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panel for each figure; in it, a line for each part of each training."""
    other = tmp_path / "other"
    other.mkdir()
    (other / LOG).write_text((trained[0] / LOG).read_text() + '{"valid_num_updates": "6", "valid_rougeL": "9"}\n')
    out = tmp_path / "both.svg"
    assert cli.main(["curves", str(trained[0]), str(other / LOG), "--out", str(out)]) == 0
    named = [each.split(" -->")[0] for each in out.read_text().split("<!-- ")[1:]]  # the texts of the picture
    titles = ["loss", "nll_loss", "rougeL", "learning rate"]
    assert [name for name in named if name in titles] == titles
    for label in ("run: training", "run: valid", "other: training", "other: valid"):
        assert named.count(label) >= 2, "in the panels of the losses"
    assert named.count("other: valid") == named.count("run: valid") + 1, "rougeL"
    assert f"wrote {out}" in capsys.readouterr().out
    assert cli.main(["curves", str(other), "--out", str(out)]) == 2 and "exists" in capsys.readouterr().err
    monkeypatch.chdir(other)
    assert (
        cli.main(["curves", ".", "--out", "here.svg"]) == 0 and "<!-- other: valid -->" in Path("here.svg").read_text()
    )


@pytest.mark.slow
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
    for update in (4, 2):  # resumed one update earlier, then two; the figures of later updates go
        with log.open("a") as file:
            file.write(json.dumps(json.loads(line) | {"num_updates": str(update), "loss": "999"}) + "\n")
        curve = read_log(log)["loss"]["train_inner"]
        assert [*curve] == list(range(1, update + 1)) and curve[update] == 999
        assert max(read_log(log)["loss"]["valid"]) <= update, "figures of all parts go"


def test_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["curves", str(tmp_path), "--out", str(tmp_path / "a.png")]
    assert cli.main(words) == 2 and "train.log is missing: train with --log-format json" in capsys.readouterr().err
    (tmp_path / LOG).write_text('[1]\n{"num_updates": []}\n{"num_updates": "NaN"}\n{"a": 1}\n{"num_up')
    assert cli.main(words) == 2 and "train.log has no figures" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()
    assert cli.main([*words[:-1], "a.xyz"]) == 2 and "--out a.xyz must end in .png" in capsys.readouterr().err
