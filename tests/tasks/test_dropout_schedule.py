"""`--dropout-schedule`: rates by epoch, module by module; test_labelled_training.py resumes a run with it."""

from typing import Any

import pytest
import torch
from building import Vocabulary, build
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.tasks import FairseqTask
from torch import nn

from hat_fairseq.tasks.encoder_task import EncoderTaskConfig
from hat_fairseq.tasks.plugin_task import DROPOUT, PluginTask

ARCHITECTURES = ["hat_roberta_tiny", "hierarchical_transformer_tiny", "hat_transformer_tiny"]


class Task(PluginTask, FairseqTask):
    """The mixin on nothing but fairseq's base."""


def task(schedule: str | None) -> Task:
    return Task(EncoderTaskConfig(data="", dropout_schedule=schedule))


def model_of(arch: str, rates: tuple[float, float, float]) -> nn.Module:
    """A model of this package, or a layer of fairseq's, with rates of dropout, of attention and of activations."""
    if arch == "fairseq":
        names = ("dropout", "attention_dropout", "activation_dropout")
        return TransformerEncoderLayerBase(TransformerConfig(**dict(zip(names, rates, strict=True))))
    flags = "--dropout {} --attention-dropout {} --activation-dropout {}".format(*rates)
    return build(arch, flags, Vocabulary(mask=True))


def rates_of(model: nn.Module) -> list[float]:
    return [module.p for module in model.modules() if isinstance(module, DROPOUT)]


@pytest.mark.parametrize("arch", [*ARCHITECTURES, "fairseq"])
def test_factors_multiply_the_rates_that_the_model_was_built_with(arch: str) -> None:
    """The last one holds; without a schedule nothing changes; fairseq's own models are served as well."""
    model = model_of(arch, (0.2, 0.1, 0.3))
    rates = rates_of(model)
    assert {0.1, 0.2, 0.3} <= set(rates)
    task(None).begin_epoch(1, model)
    assert rates_of(model) == rates
    scheduled = task("0,0.5,1.5")
    for epoch, factor in [(1, 0), (2, 0.5), (3, 1.5), (9, 1.5), (1, 0)]:
        scheduled.begin_epoch(epoch, model)
        assert rates_of(model) == [rate * factor for rate in rates], arch


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_at_factor_0_training_and_evaluation_are_the_same_function(arch: str) -> None:
    model: Any = model_of(arch, (0.4, 0.4, 0.4))
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
        task(text)
