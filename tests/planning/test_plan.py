"""`hat plan`: estimates against the allocations of real updates, and what is derived from them."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import pytest
import torch
from fairseq import optim

from hat_fairseq import cli
from hat_fairseq.planning import command as plan
from hat_fairseq.planning.training import Training, batch, build
from hat_fairseq.planning.update import Simulation

CPU = ["--cpu", "--gpus", "1"]
DOCUMENT = {"source": 300, "target": 200, "marker_every": 32}


def training_of(recipe: str, *flags: str, device: str = "meta", size: int | None = 500) -> Training:
    words, default = plan.arguments(recipe, [flag for flag in flags if flag != plan.CHECKPOINT])
    return build([*words, *(flag for flag in flags if flag == plan.CHECKPOINT)], size or default, device)


def allocated(training: Training, sample: dict[str, Any]) -> int:
    """The most bytes that torch has allocated at one time for a second update, on the CPU."""
    parameters = list(training.model.train().parameters())
    optimizer = optim.build_optimizer(training.cfg.optimizer, parameters)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    kept = 3 * sum(p.numel() * p.element_size() for p in parameters)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        loss, _, _ = training.criterion(training.model, sample)
        optimizer.backward(loss)
        optimizer.step()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    return kept + max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


@pytest.mark.parametrize("extra", [[], [plan.CHECKPOINT]], ids=["stored", "recomputed"])
@pytest.mark.parametrize("recipe", ["ami_small", "hyperpartisan_small"])
def test_the_peak_is_what_torch_allocates(recipe: str, extra: list[str]) -> None:
    training = training_of(recipe, *CPU, *extra)
    sample = batch(training, 3, **DOCUMENT)
    estimate = Simulation(training).estimate(sample)
    real = training_of(recipe, *CPU, *extra, device="cpu")
    assert estimate.peak == pytest.approx(allocated(real, sample), rel=0.05)


def test_parameters_are_those_of_the_paper_and_bytes_follow_from_the_precision() -> None:
    """hat_bart_large with GPT-2's dictionary; fairseq keeps weights and gradients in fp32 besides bf16."""
    assert sum(p.numel() for p in training_of("pubmed", size=None).model.parameters()) == 471_389_184
    simulation = Simulation(training_of("pubmed", "--encoder-layers", "2", "--decoder-layers", "1"))
    estimate = simulation.estimate(batch(simulation.training, 1, 128, 64, 32))
    buffers = estimate.weights - 2 * estimate.parameters
    assert 0 < buffers < 10_000
    assert estimate.gradients == 2 * 2 * estimate.parameters, "with DDP's copy, on two GPUs"
    assert estimate.optimizer == pytest.approx((4 + 4 + 8) * estimate.parameters, rel=1e-3)
    assert {name: number for name, (number, _) in estimate.layers.items()} == {
        "encoder.layers": 2,
        "encoder.hierarchical_encoder.layers": 1,
        "decoder.layers": 1,
    }
    assert simulation.estimate(batch(simulation.training, 1, 128, 64, 32)) == estimate, "nothing is left behind"


def test_on_a_gpu_attention_keeps_no_matrix_and_fp16_needs_a_copy_in_the_step() -> None:
    simulation = Simulation(training_of("ami_small", "--fp16", "--attention-dropout", "0.1"))
    short, long = (simulation.estimate(batch(simulation.training, 2, length, 32, 32)) for length in (512, 1024))
    layers = [estimate.layers["encoder.layers"][1] for estimate in (short, long)]
    assert layers[1] == pytest.approx(2 * layers[0], rel=0.01)
    tiny = simulation.estimate(batch(simulation.training, 1, 8, 8, 4))
    assert tiny.peak_in == "step of the optimizer"
    assert tiny.peak == pytest.approx(tiny.weights + (2 + 4 + 4 + 8 + 4) * tiny.parameters, rel=0.01)


@pytest.mark.parametrize(
    ("recipe", "flags"),
    [
        ("squad2", ["--encoder-layers", "1"]),
        ("natural_questions", ["--encoder-layers", "1", "--encoder-attention-layers", "0"]),
        ("race", ["--encoder-layers", "1"]),
        ("roberta_pretraining", ["--encoder-layers", "1", "--memory-efficient-bf16"]),
        ("sequential_sentences", ["--layout", "SD"]),
        ("hierarchical_transformer_pretraining", ["--layout", "SD"]),
    ],
)
def test_every_kind_of_data_on_a_gpu(recipe: str, flags: list[str]) -> None:
    training = training_of(recipe, *flags)
    simulation = Simulation(training)
    one, two = (simulation.estimate(batch(training, number, 256, 0, 64), 2) for number in (1, 2))
    assert 0 < one.activations < two.activations and one.peak <= two.peak
    assert list(one.layers.values())[0][0] == 1


def test_the_largest_batch_keeps_the_size_of_the_update(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["ami_small", "--cpu", "--update-batch-size", "8", "--source-tokens", "256", "--target-tokens", "64"]
    flags += ["--dictionary-size", "500"]
    assert cli.main(["plan", *flags, "--gpu-memory", "700M", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["batch"] == {"batch-size": 4, "update-freq": 2}
    assert result["document"] == {"source": 256, "target": 64, "marker_every": 32}
    sizes = [result[name]["largest"]["batch-size"] for name in plan.VARIANTS]
    assert 1 <= sizes[0] <= sizes[1] <= 8
    for name in plan.VARIANTS:
        fitting = result[name]["largest"]
        assert fitting["batch-size"] * fitting["update-freq"] == 8
    assert result["recomputed"]["activations"] < result["stored"]["activations"]
    assert cli.main(["plan", *flags, "--gpu-memory", "100M"]) == 0
    assert "not even the smallest batch fits" in capsys.readouterr().out


@pytest.mark.parametrize("fixed", [50, 300])
@pytest.mark.parametrize("bend", [0, 5])
@pytest.mark.parametrize("start", [1, 4, 12])
def test_the_largest_batch_of_a_convex_peak_is_found_in_few_simulations(fixed: int, bend: int, start: int) -> None:
    """From any start and for any memory; not one that is not simulated."""
    sizes = [1, 2, 3, 4, 6, 12]
    curve = {size: max(100 + 10 * size, 60 + (10 + bend) * size, fixed) for size in [0, *sizes]}
    for memory in range(40, 320, 7):
        peaks = {0: fixed, start: curve[start]}
        found = plan.largest(sizes, memory, peaks, curve.__getitem__)
        assert found == max((size for size in sizes if fixed <= memory and curve[size] <= memory), default=0)
        assert not found or found in peaks and len(peaks) <= 5


def test_long_documents_in_a_batch_of_tokens() -> None:
    assert plan.documents_of({"max-tokens": 1024}, {"source": 300, "target": 512}) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--gpu-memory", "24"], "--gpu-memory 24: write it as 24G or 16000M"),
        (["--batch-size=null", "--update-freq", "1"], "give --batch-size or --max-tokens"),
        (["--amp"], "not --amp"),
        (["--dictionary-size", "-5"], "--dictionary-size must be at least 1, not -5"),
        (["--source-tokens", "-1"], "--source-tokens must be at least 1, not -1"),
        (["--source-tokens", "2000"], "raise --max-source-positions"),
    ],
)
def test_a_mistake_is_one_line(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "ami_small", "--dictionary-size", "100", *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("hat: error: ") and message in error


def test_pairs_are_not_planned_as_single_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--arch=null", "--arch", "hat_roberta_tiny", "--no-hierarchy"]
    assert cli.main(["plan", "lra_retrieval", *flags]) == 2
    assert "only the data say that a sample is a byte_pair: run `hat recipe preprocess" in capsys.readouterr().err
    assert cli.main(["plan", "lra_listops", *flags]) == 0
