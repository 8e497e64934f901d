"""`hat average`: the mean of the weights of real checkpoints, which generates as any other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hat_fairseq import cli
from hat_fairseq.register import register

register()  # the tests read checkpoints, whose types the plugin allows


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """checkpoint_1_1.pt, checkpoint_1_2.pt and so on; three updates an epoch, validated after 2 and at each end."""
    folder = tmp_path_factory.mktemp("run")
    flags = ["--max-update", 5, "--save-interval-updates", 1, "--validate-interval-updates", 2, "--lr", 0.1]
    train(folder, *flags)
    return folder


def load(path: Path) -> dict:
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize(("flag", "number"), [("--last", 3), ("--best", 2)])
def test_the_mean_of_the_chosen_ones(trained: Path, tmp_path: Path, capsys, flag: str, number: int) -> None:
    out = tmp_path / "mean.pt"
    assert cli.main(["average", str(trained), flag, str(number), "--out", str(out)]) == 0
    states = {path.name: load(path) for path in trained.glob("checkpoint_?_?.pt")}
    order = sorted(states, key=lambda name: -states[name]["optimizer_history"][-1]["num_updates"])
    if flag == "--best":
        scored = {name: states[name]["extra_state"].get("val_loss") for name in order}
        order = sorted((name for name in order if scored[name] is not None), key=lambda name: scored[name])
        assert len(order) >= number
    averaged = load(out)
    chosen = [states[name]["model"] for name in order[:number]]
    used = averaged["extra_state"]["averaged"]
    updates = [load(trained / name)["optimizer_history"][-1]["num_updates"] for name in used]
    assert updates == [states[name]["optimizer_history"][-1]["num_updates"] for name in order[:number]]
    assert f"the mean of {', '.join(used)}" in capsys.readouterr().out
    assert averaged["model"].keys() == chosen[0].keys()
    for name, tensor in averaged["model"].items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, sum(each[name] for each in chosen) / number)
            assert tensor.dtype == chosen[0][name].dtype
        else:
            assert tensor.equal(chosen[0][name])
    tied = {tensor.data_ptr() for tensor in averaged["model"].values()}
    assert len(tied) == len({tensor.data_ptr() for tensor in chosen[0].values()}) < len(averaged["model"])
    assert averaged["last_optimizer_state"] is None


def test_it_generates(trained: Path, ami: Path, warm, tmp_path: Path) -> None:
    assert cli.main(["average", str(trained), "--last", "2", "--out", str(tmp_path / "mean.pt")]) == 0
    flags = ["--max-len-b", "4", "--device", "cpu"]
    words = ["generate", ami / "bin", "--path", tmp_path / "mean.pt", "--results-path", tmp_path / "out", *flags]
    warm.run(["hat_fairseq.cli", *map(str, words)], tmp_path, tmp_path / "log")
    assert (tmp_path / "out/test.jsonl").read_text().count("\n") == 6


@pytest.mark.fault("Checkpoints", "hat average of checkpoints of different models", "refused; names both and a tensor")
@pytest.mark.parametrize("change", ["another shape", "another dictionary"])
def test_of_different_models(trained: Path, tmp_path: Path, capsys, change: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for number, path in enumerate(("checkpoint_1_1.pt", "checkpoint_1_2.pt")):
        state = load(trained / path)
        name = next(
            name for name in state["model"] if name.endswith("_fingerprint") == (change == "another dictionary")
        )
        if number:
            state["model"][name] = state["model"][name][:-1] if change == "another shape" else state["model"][name] + 1
        torch.save(state, folder / path)
    assert cli.main(["average", str(folder), "--last", "2", "--out", str(tmp_path / "mean.pt")]) == 2
    error = capsys.readouterr().err
    assert "are of different models: " in error and name in error and not (tmp_path / "mean.pt").exists()


def test_what_cannot_be_averaged_is_refused(trained: Path, tmp_path: Path, capsys) -> None:
    out, output = str(tmp_path / "mean.pt"), str(trained / "checkpoint_1_2.pt")
    for folder, words, message in (
        (trained, ["--last", "1", "--out", out], "an average needs at least 2 checkpoints, not 1"),
        (trained, ["--last", "9", "--out", out], "has 4 checkpoints, 9 were asked for"),
        (trained, ["--best", "9", "--out", out], "checkpoints that were validated when they were saved, 9 were asked"),
        (trained, ["--last", "2", "--out", str(tmp_path / "no/a.pt")], str(tmp_path / "no")),
        (trained, ["--last", "2", "--out", output, "--overwrite"], "checkpoint_1_2.pt"),  # it is an input
        (tmp_path, ["--last", "2", "--out", out], "has 0 checkpoints"),
        (tmp_path / "no", ["--last", "2", "--out", out], str(tmp_path / "no")),
    ):
        assert cli.main(["average", str(folder), *words]) == 2
        assert message in capsys.readouterr().err and not (tmp_path / "mean.pt").exists()
