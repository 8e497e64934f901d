"""`hat plan`: estimates against the allocations of real updates, and what is derived from them."""

import json
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from fairseq import optim
from tokenizers_on_the_spot import write_tokenizer

from hat_fairseq import cli
from hat_fairseq.modules import layers
from hat_fairseq.planning.command import batch, expected_symbols, longest_document, set_up
from hat_fairseq.planning.memory import Updates

CPU = ["--cpu", "--gpus", "1"]
ONE = ["--encoder-layers", "1"]
DOCUMENT = {"source": 300, "target": 200, "marker_every": 32}
CHECKPOINT = "--checkpoint-activations"


def training_of(recipe: str, *flags: str, size: int | None = 500) -> Any:
    return set_up(recipe, flags, size)


def plan_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["plan", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def allocated(cfg: Any, task: Any, sample: dict[str, Any]) -> int:
    """The most bytes that torch has allocated at one time for a second update, on the CPU."""
    model, criterion = task.build_model(cfg.model).train(), task.build_criterion(cfg.criterion)
    parameters = list(model.parameters())
    optimizer = optim.build_optimizer(cfg.optimizer, parameters)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    lasting = 3 * sum(p.numel() * p.element_size() for p in parameters)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        optimizer.backward(criterion(model, sample)[0])
        optimizer.step()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    return lasting + max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], [CHECKPOINT]], ids=["stored", "recomputed"])
@pytest.mark.parametrize("recipe", ["ami_small", "hyperpartisan_small"])
def test_the_peak_is_what_torch_allocates(recipe: str, extra: list[str]) -> None:
    cfg, task, kind = training_of(recipe, *CPU, *extra)
    sample = batch(task, kind, 3, **DOCUMENT)
    updates = Updates(cfg, task)
    assert updates.peak(sample, 1) == pytest.approx(allocated(cfg, task, sample), rel=0.05)
    assert updates.peak(sample, 1) == updates.peak(sample, 1), "nothing is left behind"


@pytest.mark.slow
def test_windows_recomputed_in_groups_need_less(monkeypatch: pytest.MonkeyPatch) -> None:
    cfg, task, kind = training_of(
        "ami_small", *CPU, CHECKPOINT, "--encoder-attention", "window", "--attention-window", "2"
    )
    sample, peaks = batch(task, kind, 3, **{**DOCUMENT, "target": 20}), []
    for tokens in (10_000, 120):
        monkeypatch.setitem(layers.TOKENS_OF_GROUP, "cpu", tokens)
        peaks.append(Updates(cfg, task).peak(sample, 1))
        assert peaks[-1] == pytest.approx(allocated(cfg, task, sample), rel=0.05)
    lasting = sum(Updates(cfg, task).sizes.values())
    assert peaks[1] - lasting < 0.75 * (peaks[0] - lasting)


@pytest.mark.slow
def test_parameters_are_those_of_the_paper_and_bytes_follow_from_the_precision() -> None:
    """hat_bart_large with GPT-2's dictionary; fairseq keeps weights and gradients in fp32 besides bf16."""
    cfg, task, _ = training_of("pubmed", size=None)
    updates = Updates(cfg, task)
    number, sizes = updates.parameters, updates.sizes
    assert number == 471_389_184
    assert 0 < sizes["weights"] - 2 * number < 10_000, "buffers"
    assert sizes["gradients"] == 2 * 2 * number, "with DDP's copy, on two GPUs"
    assert sizes["optimizer"] == pytest.approx((4 + 4 + 8) * number, rel=1e-3)


@pytest.mark.slow
def test_on_a_gpu_attention_keeps_no_matrix() -> None:
    flags = ["--fp16", "--attention-dropout", "0.1"]
    cfg, task, kind = training_of("ami_small", *flags)
    updates = Updates(cfg, task)
    third, second, first = (updates.peak(batch(task, kind, 8, n, 32, 32), 1) for n in (1024, 768, 512))
    assert third - second == pytest.approx(second - first, rel=0.02)
    assert first < second, "a smaller batch later"
    on_two = Updates(training_of("ami_small", *flags, "--gpus", "2", "--update-batch-size", "8")[0], task)
    assert on_two.peak(batch(task, kind, 8, 512, 32, 32), 1) - first == 2 * updates.parameters, "DDP's copy"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "flags"),
    [
        ("squad2", ONE),
        ("roberta_pretraining", [*ONE, "--memory-efficient-bf16"]),
        ("natural_questions", [*ONE, "--encoder-attention-layers", "0"]),
        ("race", ONE),
        ("qmsum", ["--encoder-layers", "1", "--vectors=null"]),
        ("sequential_sentences", ["--layout", "SD"]),
        ("hierarchical_transformer_pretraining", ["--layout", "SD"]),
    ],
)
def test_every_kind_of_data_on_a_gpu(recipe: str, flags: list[str]) -> None:
    cfg, task, kind = training_of(recipe, *flags)
    assert 500 <= len(task.source_dictionary) < 600, "with markers and <mask>"
    updates = Updates(cfg, task)
    one, two = (updates.peak(batch(task, kind, documents, 256, 0, 64), 1) for documents in (8, 16))
    assert sum(updates.sizes.values()) < one < two
    assert updates.peak(batch(task, kind, 16, 256, 0, 64), 2) > two, "gradients of another batch"


@pytest.mark.slow
def test_the_largest_batch_keeps_the_size_of_the_update(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["ami_small", "--cpu", "--update-batch-size", "8", "--source-tokens", "256", "--target-tokens", "64"]
    flags += ["--dictionary-size", "500", "--gpu-memory"]
    result = plan_of(capsys, *flags, "570M")
    assert result["batch"] == {"batch-size": 4, "update-freq": 2}
    assert result["document"] == {"source": 256, "target": 64, "marker_every": 32}
    largest = result["largest"]
    fitting, next_size = largest["batch-size"], 2 * largest["batch-size"]
    assert largest["update-freq"] * fitting == 8
    assert fitting < 8
    for size, fits in ((fitting, True), (next_size, False)):
        one = plan_of(capsys, *flags[:-1], "--batch-size", str(size))
        assert (one["peak"] <= 570 << 20) is fits
    assert cli.main(["plan", *flags, "100M"]) == 0
    assert "not even the smallest batch fits" in capsys.readouterr().out


@pytest.mark.parametrize(("segments", "marker_every"), [(32, 32), (4, 64), (2, 128)])
def test_a_document_has_as_many_segments_as_the_model_takes(segments: int, marker_every: int) -> None:
    flags = ["--layout", "SD", "--segment-by", "marker", "--max-segments", str(segments)]
    cfg, task, kind = training_of("sequential_sentences", *CPU, *flags)
    args = SimpleNamespace(source_tokens=256, target_tokens=None)
    document = longest_document(args, {}, task.build_model(cfg.model), partial(batch, task, kind, 1))
    assert document["marker_every"] == marker_every


@pytest.mark.slow
def test_long_documents_in_a_batch_of_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    """fairseq counts the longer side of each."""
    flags = ["--batch-size=null", "--max-tokens", "1024", "--source-tokens", "300", "--target-tokens", "512"]
    flags += ["--update-freq", "1"]
    assert plan_of(capsys, "ami_small", *CPU, "--dictionary-size", "500", *flags)["documents"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ami_small --batch-size=null --update-freq 1", "give --batch-size or --max-tokens"),
        ("ami_small --amp", "not --amp"),
        ("ami_small --optimizer cpu_adam", "not cpu_adam"),
        ("ami_questions", "the model takes documents of any length: give --source-tokens"),
        ("ami_small --source-tokens 2000", "raise --max-source-positions"),
        ("hyperpartisan_small --target-tokens 99", "--target-tokens has no effect: the model writes no texts"),
        (
            "lra_retrieval --arch=null --arch hat_roberta_tiny --no-hierarchy",
            "only the data say that a sample is a byte_pair: run `hat recipe preprocess",
        ),
    ],
)
def test_what_cannot_be_planned(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", *words.split(), "--dictionary-size", "100"]) == 2
    assert message in capsys.readouterr().err


def test_the_dictionary_before_there_are_data(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "t", "uncased WordPiece")
    for preprocess, size in (
        ({"reader": "ami", "num-codes": 4000}, 4000),
        ({"reader": "ami", "bpe": "gpt2"}, 50_264),
        ({"reader": "tydi_qa", "bpe": "sentencepiece", "bpe-dir": "xlmr.large"}, 250_001),
        ({"reader": "xsum", "bpe": "tokenizer", "bpe-dir": str(tmp_path / "none")}, 30_521),
        ({"reader": "xsum", "bpe": "tokenizer", "bpe-dir": str(tmp_path / "t")}, 1199),
        ({"reader": "lra_text"}, 260),
        ({"reader": "lra_listops"}, 260),
    ):
        assert expected_symbols(preprocess) == size
    bert = transformers.BertConfig()
    assert bert.vocab_size == 30_521 + 1  # <mask>


RECIPE = """
preprocess: {%s}
task: {task: sequence_classification, max-positions: 64, data: data-bin/mine/bin}
train: {arch: hat_roberta_tiny, batch-size: 2, lr: 1e-3, optimizer: adam, save-dir: checkpoints/mine}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ("", ""),
        ("reader: mine, kind: classification", ""),
        ("reader: reader.py", ""),
        ("reader: mine, kind: byte_pair", "only the data say that a sample is a byte_pair"),
    ],
)
def test_a_recipe_of_ones_own_before_there_are_data(
    preprocess: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(RECIPE % preprocess)
    assert cli.main(["plan", "mine.yaml", "--dictionary-size", "100"]) == (2 if message else 0)
    printed = capsys.readouterr()
    assert message in printed.err
    assert "mine.yaml: hat_roberta_tiny" in printed.out or message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpu-memory", "24"], "24: write it as 24G or 16000M"),
        (["--dictionary-size", "-5"], "argument --dictionary-size"),
        (["--source-tokens", "0"], "argument --source-tokens"),
    ],
)
def test_sizes_that_are_none_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["plan", "ami_small", *words])
    assert message in capsys.readouterr().err
