"""`--dropout-schedule`: rates by epoch, in real runs and module by module."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from building import Vocabulary, build
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from torch import nn

from hat_fairseq.tasks.config import EncoderTaskConfig
from hat_fairseq.tasks.training import DROPOUT, PluginTask, parse_factors

CURVE = re.compile(r"train_inner \| (\{.*?\})")


def losses(*results: Any) -> list[float]:
    text = "".join(result.stdout + result.stderr for result in results)
    return [float(json.loads(match)["loss"]) for match in CURVE.findall(text)]


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return torch.load(directory / "checkpoint_last.pt", weights_only=True)["model"]


class Task(PluginTask, FairseqTask):
    """The mixin on nothing but fairseq's base."""


def task(schedule: str | None) -> Task:
    return Task(EncoderTaskConfig(data="", dropout_schedule=schedule))


def rates(model: nn.Module) -> list[float]:
    return [module.p for module in model.modules() if isinstance(module, DROPOUT)]


def test_every_task_of_ours_has_it() -> None:
    ours = [name for name, cls in TASK_REGISTRY.items() if cls.__module__.startswith("hat_fairseq.")]
    assert len(ours) == 10 and all(issubclass(TASK_REGISTRY[name], PluginTask) for name in ours)


def model_of(arch: str, flags: str) -> nn.Module:
    """Ours, or a layer of fairseq's."""
    if arch == "fairseq":
        config = TransformerConfig(dropout=0.2, attention_dropout=0.1, activation_dropout=0.3)
        return TransformerEncoderLayerBase(config)
    return build(arch, flags, Vocabulary(mask=True))


OURS = ["hat_roberta_tiny", "hierarchical_transformer_tiny", "hat_transformer_tiny"]


@pytest.mark.parametrize("arch", [*OURS, "fairseq"])
def test_factors_multiply_the_rates_that_the_model_was_built_with(arch: str) -> None:
    """The last one holds; without a schedule nothing changes; fairseq's own models are served as well."""
    model = model_of(arch, "--dropout 0.2 --attention-dropout 0.1 --activation-dropout 0.3")
    own = rates(model)
    assert {0.1, 0.2, 0.3} <= set(own)
    task(None).begin_epoch(1, model)
    assert rates(model) == own
    scheduled = task("0,0.5,1.5")
    for epoch, factor in [(1, 0), (2, 0.5), (3, 1.5), (9, 1.5), (1, 0)]:
        scheduled.begin_epoch(epoch, model)
        assert rates(model) == [rate * factor for rate in own]


@pytest.mark.parametrize("arch", OURS)
def test_no_dropout_is_left_out(arch: str) -> None:
    """At factor 0 training and evaluation are the same function."""
    flags = "--dropout 0.4 --attention-dropout 0.4 --activation-dropout 0.4"
    model = model_of(arch, flags if arch == "hat_transformer_tiny" else f"{flags} --pooler-dropout 0.4")
    tokens = torch.arange(4, 34).view(2, 15)
    inputs: dict[str, Any] = {"src_tokens": tokens}
    if arch == "hat_transformer_tiny":
        inputs |= {"src_lengths": None, "prev_output_tokens": tokens[:, :9]}
    else:
        model.register_classification_head("topic", 3)
        inputs["classification_head_name"] = "topic"
    assert not torch.equal(model.train()(**inputs)[0], model.train()(**inputs)[0])
    task("0").begin_epoch(1, model)
    assert torch.equal(model.train()(**inputs)[0], model.eval()(**inputs)[0])


@pytest.mark.parametrize("text", ["off", "", "0,", "1;2", "-1", "nan", "0,inf", "0 1"])
def test_a_wrong_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--dropout-schedule.*for example 0,1"):
        parse_factors(text)


def test_a_rate_above_one_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match=r"4 times a dropout rate of 0\.3 is more than 1"):
        task("4").begin_epoch(1, nn.Dropout(0.3))


def test_a_wrong_schedule_stops_the_command(train, tmp_path: Path) -> None:
    result = train(tmp_path, "--dropout-schedule", "off", check=False)
    assert result.returncode and "--dropout-schedule 'off': give factors" in result.stderr.strip().splitlines()[-1]


def test_a_stopped_run_goes_on_with_the_same_rates(train, tmp_path: Path) -> None:
    """Three updates an epoch, dropout off in the first; stopped in the middle of the second."""
    common = ["--disable-validation", "--dropout", 0.3, "--attention-dropout", 0.3]
    schedule = ["--dropout-schedule", "0,1"]
    whole = train(tmp_path / "whole", *common, *schedule, "--max-update", 6)
    save = ["--save-interval-updates", 1, "--keep-interval-updates", 1]
    parts = [train(tmp_path / "parts", *common, *schedule, *save, "--max-update", n) for n in (4, 6)]
    assert len(losses(whole)) == 6 and losses(*parts) == losses(whole)
    whole_state, state = (weights(tmp_path / name) for name in ("whole", "parts"))
    assert all(torch.equal(tensor, state[name]) for name, tensor in whole_state.items())
    off = train(tmp_path / "off", "--disable-validation", "--dropout", 0, "--attention-dropout", 0, "--max-update", 4)
    assert losses(off)[:3] == losses(whole)[:3] and losses(off)[3] != losses(whole)[3]
