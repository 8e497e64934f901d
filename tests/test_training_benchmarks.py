"""The benchmarks of training run, verify that their sides are comparable, and refuse what is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import train_step
from commands import run_command
from one_round import one_round

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SMALL = {"width": 32, "heads": 4, "layers": 1, "vocabulary": 100, "target": 20}
SETTING = {"name": "x", "documents": 2, "source": 70, "target": 20, "width": 32, "heads": 4, "layers": 1}
SETTING |= {"vocabulary": 100, "attention_dropout": 0.1}


@pytest.mark.parametrize(
    ("script", "contenders", "sentence"),
    [
        ("training_hierarchy", ["hat", "plain"], "more of the hierarchy in HAT"),
        ("training_fairseq", ["ours", "ours, checkpointed", "fairseq"], "the same loss (1e-5) and gradient (1e-4)"),
    ],
)
def test_it_measures_comparable_updates(script: str, contenders: list[str], sentence: str) -> None:
    runs, verified = one_round(script, 0, source=70, **SMALL)
    assert [run["contender"] for run in runs] == contenders
    assert {run["tokens"] for run in runs} == {90} and sentence in "; ".join(verified)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ("0", "width=48 heads=4 vocabulary=500 layers=1 source=300 batch=2 new=8"),
        ("2 3", "width=32 heads=4 vocabulary=100 layers=1 source=300 target=20"),
        ("6 7", "width=32 heads=4 vocabulary=100 layers=1 length=700"),
    ],
    ids=["generation", "updates", "encoders"],
)
def test_plain_parts_compute_what_fast_parts_compute(settings: str, sizes: str, tmp_path: Path) -> None:
    flags = ["--rounds", "1", "--threads", "1", "--settings", *settings.split(), "--set", *sizes.split()]
    run_command(sys.executable, BENCHMARKS / "ablation.py", *flags, "--out", tmp_path / "result.json")
    checks = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["checks"]
    assert all("the same" in check["verified"][0] for check in checks)


@pytest.mark.slow
def test_a_curve_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'hat_fairseq[bench]'")
    out = tmp_path / "result.json"
    small = [f"{key}={value}" for key, value in SMALL.items()]
    flags = ["--rounds", "1", "--threads", "1", "--settings", "0", "1", "--set", *small]
    run_command(sys.executable, BENCHMARKS / "source_length.py", *flags, "--out", out)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert all(list(rows) == ["ours", "fairseq"] for rows in record["summary"].values())
    assert all("more of the hierarchy in HAT" in "; ".join(check["verified"]) for check in record["checks"])
    assert all(3 < end["loss"] < 7 for end in record["processes"])  # log(100) = 4.6
    assert (tmp_path / "result.png").is_file()


def test_sides_that_differ_are_refused() -> None:
    found = train_step.same_loss(SETTING)
    assert "same loss" in train_step.checked_loss(SETTING, found)
    with pytest.raises(SystemExit, match="differ"):
        train_step.checked_loss(SETTING, {**found, "plain_loss": found["plain_loss"] * 1.001})
    hat, plain = {"parameters": 30, "of_the_hierarchy": 10}, {"parameters": 20}
    assert "10.0M more" in train_step.checked_parameters(
        SETTING, *({k: v * 10**6 for k, v in x.items()} for x in (hat, plain))
    )
    with pytest.raises(SystemExit, match="other parameters"):
        train_step.checked_parameters(SETTING, hat, {"parameters": 21})


def test_an_update_changes_the_weights() -> None:
    model = train_step.ours("hat_bart_base", **train_step.model_sizes(SETTING))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    job = train_step.update_job(model, train_step.OURS, SETTING)
    assert job.step() == {"tokens": 2 * 90}
    # A key bias has no gradient: a softmax does not see it.
    same = [name for name, parameter in model.named_parameters() if parameter.equal(before[name])]
    assert all(name.endswith("k_proj.bias") for name in same)


def test_documents_have_their_shares_of_the_length() -> None:
    setting = SETTING | {"shares": [1, 0.5]}
    batch = train_step.sample(setting)
    source, target = batch["net_input"]["src_tokens"], batch["target"]
    assert source.ne(train_step.PAD).sum(1).tolist() == [70, 35] == batch["net_input"]["src_lengths"].tolist()
    assert source[1, 34] == target[1, 9] == train_step.EOS and batch["ntokens"] == 30
    assert batch["net_input"]["prev_output_tokens"][1, 1:10].equal(target[1, :9])
    model = train_step.ours("hat_bart_base", **train_step.model_sizes(setting))
    assert train_step.update_job(model, train_step.OURS, setting).step() == {"tokens": 135}
