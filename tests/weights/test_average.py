"""`hat average`: the mean of the weights of real checkpoints, which generates as any other."""

from pathlib import Path

import pytest
import torch
from commands import hat, refusal

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


def updates_of(state: dict) -> int:
    return state["optimizer_history"][-1]["num_updates"]


@pytest.mark.slow
def test_the_mean_of_the_last_ones(trained: Path, tmp_path: Path, capsys) -> None:
    out, number = tmp_path / "mean.pt", 3
    assert hat("average", trained, "--last", number, "--out", out) == 0
    states = sorted(map(load, trained.glob("checkpoint_?_?.pt")), key=updates_of, reverse=True)
    averaged = load(out)
    used = averaged["extra_state"]["averaged"]
    assert [updates_of(load(trained / name)) for name in used] == [*map(updates_of, states[:number])]
    assert f"the mean of {', '.join(used)}" in capsys.readouterr().out
    first, *others = (state["model"] for state in states[:number])
    assert averaged["model"].keys() == first.keys()
    assert averaged["last_optimizer_state"] is None
    for name, tensor in averaged["model"].items():
        floating = tensor.is_floating_point()
        expected = sum((other[name] for other in others), first[name]) / number if floating else first[name]
        torch.testing.assert_close(tensor, expected)
    tied = {tensor.data_ptr() for tensor in averaged["model"].values()}
    assert len(tied) == len({tensor.data_ptr() for tensor in first.values()}) < len(averaged["model"])


@pytest.mark.slow
def test_the_mean_of_named_ones(trained: Path, tmp_path: Path, capsys) -> None:
    """From several folders, in the given order."""
    last, names = load(trained / "checkpoint_1_1.pt"), ["checkpoint_1_1.pt", "other.pt"]
    (tmp_path / "other.pt").write_bytes((trained / "checkpoint_2_4.pt").read_bytes())
    out = tmp_path / "mean.pt"
    assert hat("average", trained / names[0], tmp_path / names[1], "--out", out) == 0
    averaged = load(out)
    assert averaged["extra_state"]["averaged"] == names
    assert f"the mean of {', '.join(names)}" in capsys.readouterr().out
    other = load(tmp_path / "other.pt")["model"]
    for name, tensor in averaged["model"].items():
        expected = (last["model"][name] + other[name]) / 2 if tensor.is_floating_point() else other[name]
        torch.testing.assert_close(tensor, expected)


@pytest.mark.slow
def test_it_generates(trained: Path, ami: Path, run, tmp_path: Path) -> None:
    assert hat("average", trained, "--last", "2", "--out", tmp_path / "mean.pt") == 0
    flags = ["--max-len-b", "4", "--device", "cpu"]
    run("hat", "generate", tmp_path / "mean.pt", ami, "--out", tmp_path / "out/test.jsonl", *flags)
    assert (tmp_path / "out/test.jsonl").read_text().count("\n") == 6


@pytest.mark.slow
@pytest.mark.fault("Checkpoints", "hat average of checkpoints of different models", "refused; names both and a tensor")
@pytest.mark.parametrize("change", ["another shape", "another dictionary"])
def test_of_different_models(trained: Path, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for number, path in enumerate(("checkpoint_1_1.pt", "checkpoint_1_2.pt")):
        state, is_shape = load(trained / path), change == "another shape"
        name = next(name for name in state["model"] if name.endswith("_fingerprint") != is_shape)
        if number:
            state["model"][name] = state["model"][name][:-1] if is_shape else state["model"][name] + 1
        torch.save(state, folder / path)
    error = refusal("average", folder, "--last", "2", "--out", tmp_path / "mean.pt")
    assert "are of different models: " in error
    assert name in error
    assert not (tmp_path / "mean.pt").exists()


@pytest.mark.slow
def test_a_damaged_checkpoint_is_named(trained: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "run").mkdir()
    for number in (1, 2):
        (folder / f"checkpoint_1_{number}.pt").write_bytes((trained / f"checkpoint_1_{number}.pt").read_bytes())
    content = bytearray((path := folder / "checkpoint_1_2.pt").read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert f"{path}" in refusal("average", folder, "--last", 2, "--out", tmp_path / "more.pt")


@pytest.mark.slow
def test_what_cannot_be_averaged_is_refused(trained: Path, tmp_path: Path) -> None:
    out, output = str(tmp_path / "mean.pt"), str(trained / "checkpoint_1_2.pt")
    for folder, words, message in (
        (trained, ["--last", "1", "--out", out], "an average needs at least 2 checkpoints, not 1"),
        (trained, ["--last", "9", "--out", out], "has 4 checkpoints, 9 were asked for"),
        (trained, ["--last", "2", "--out", str(tmp_path / "no/a.pt")], str(tmp_path / "no")),
        (trained, ["--last", "2", "--out", output, "--overwrite"], "checkpoint_1_2.pt"),  # it is an input
        (trained, ["--last", "2", "--out", str(trained / "checkpoint_best.pt"), "--overwrite"], "checkpoint_best.pt"),
        (
            trained,
            ["--last", "2", "--out", str(trained / "checkpoint99.pt")],
            "a training names its own checkpoints so",
        ),
        (tmp_path / "no", ["--last", "2", "--out", out], "no has 0 checkpoints"),
    ):
        assert message in refusal("average", folder, *words)
        assert not (tmp_path / "mean.pt").exists()
    one = trained / "checkpoint_1_2.pt"
    for named, message in (
        ([one], "name one folder with --last N, or at least 2 checkpoints"),
        ([trained], "name one folder with --last N, or at least 2 checkpoints"),
        ([one, one, "--last", 2], "name one folder with --last N, or at least 2 checkpoints"),
        ([one, trained], f"{trained}: no file; name checkpoints, or one folder"),
        ([one, tmp_path / "no.pt"], f"{tmp_path}/no.pt: no file"),
    ):
        assert message in refusal("average", *named, "--out", out)
        assert not (tmp_path / "mean.pt").exists()
    assert "checkpoint_1_2.pt" in refusal("average", one, trained / "checkpoint_2_4.pt", "--out", one, "--overwrite")
