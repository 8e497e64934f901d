"""`self_attention_regularization` against its definition, term by term, for every base criterion; and in training."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from commands import USER_DIR
from fairseq import options, tasks
from fairseq.criterions import CRITERION_REGISTRY, build_criterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.logging import metrics
from helpers import assert_close
from torch import Tensor
from warm import WarmPython

from hat_fairseq.data.kinds import KINDS

Data = Callable[[str], Path]
WINDOW = "--no-hierarchy --encoder-attention window --attention-window 5 --pooler-dropout 0 "
STILL = "--dropout 0 --attention-dropout 0 "
BASES = {"tokens": "document_labels", "qa": "answer_spans", "document_qa": "document_answers"}
ALL = pytest.mark.parametrize("kind", BASES)


def regularized(base: str, task: Any, alpha: float = 3.0, roll: int = 2) -> Any:
    cfg = {"criterion": "self_attention_regularization", "base_criterion": base, "sar_alpha": alpha, "sar_roll": roll}
    return build_criterion(SimpleNamespace(**cfg), task)


def setting(kind: str, data_of: Data, flags: str = STILL) -> tuple[Any, Any, dict[str, Any], Any]:
    """Task, model, a batch, and the base criterion."""
    words = f"{data_of(kind)} --task {KINDS[kind].task} --arch hat_roberta_tiny --cpu {WINDOW} {flags}".split()
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    task = tasks.setup_task(args)
    model = task.build_model(args)
    task.load_dataset("train")
    batch = task.datasets["train"].collater([task.datasets["train"][index] for index in range(5)])
    return task, sharpened(model), batch, CRITERION_REGISTRY[BASES[kind]](task)


@torch.no_grad()
def sharpened(model: Any) -> Any:
    """A new model's predictions are almost uniform, so that two of them hardly differ."""
    for p in model.parameters():
        p.mul_(8 if p.dim() == 2 else 1)
    return model


def distributions(kind: str, task: Any, model: Any, batch: dict[str, Any]) -> list[tuple[float, Tensor]]:
    """The weight and the logits, where they are not -inf, of each distribution that the loss of a pass is about."""
    logits, target = task.logits(model, batch), batch["target"]
    if kind == "document_qa":
        pairs = [(1 / 6, side) for row in logits["span"] for side in row.T]
        pairs += [(1 / 3, row) for name in ("paragraph", "type") for row in logits[name]]
    elif kind == "qa":
        pairs = [(1 / 2, side) for row in logits for side in row.T]
    else:
        pairs = [(1, row) for row, label in zip(logits.flatten(0, -2), target.flatten(), strict=True) if label >= 0]
    return [(weight, row[row > -math.inf]) for weight, row in pairs]


def by_hand(kind: str, task: Any, model: Any, batch: dict[str, Any], base: Any, roll: int) -> tuple[Tensor, Tensor]:
    """The two losses added, and the divergence: for each distribution, half of both Kullback-Leibler divergences."""
    rolled = {**batch, "net_input": {**batch["net_input"], "roll": roll}}
    losses = base(model, batch)[0] + base(model, rolled)[0]
    divergence = losses.new_zeros(())
    pairs = zip(distributions(kind, task, model, batch), distributions(kind, task, model, rolled), strict=True)
    for (weight, first), (_, second) in pairs:
        p, q = first.softmax(-1), second.softmax(-1)
        divergence = divergence + weight / 2 * ((p * (p / q).log()).sum() + (q * (q / p).log()).sum())
    return losses, divergence


@pytest.mark.slow
@ALL
def test_loss_and_gradients_are_the_definition(data_of: Data, kind: str) -> None:
    task, model, batch, base = setting(kind, data_of)
    losses, divergence = by_hand(kind, task, model, batch, base, roll=2)
    (losses + 3 * divergence).backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    loss, size, log = regularized(BASES[kind], task)(model, batch)
    loss.backward()
    assert divergence > 1e-5
    assert size == base(model, batch)[1]
    assert_close(loss, losses + 3 * divergence)
    assert_close(log["nll_loss"] * 2, losses.detach())
    assert_close(log["sar_loss"], divergence.detach())
    assert wanted.keys() == {name for name, p in model.named_parameters() if p.grad is not None}
    for name, p in model.named_parameters():
        if p.grad is not None:
            assert_close(p.grad, wanted[name])


@pytest.mark.parametrize(("flags", "differs"), [(STILL, False), ("--dropout 0.3 ", True)])
def test_r_drop_differs_by_dropout_alone(flags: str, differs: bool, data_of: Data) -> None:
    task, model, batch, _ = setting("tokens", data_of, flags)
    log = regularized("document_labels", task, roll=0)(model.train(), batch)[2]
    assert bool(log["sar_loss"] > 1e-6) == differs


def test_the_model_of_one_of_several_processes(data_of: Data, tmp_path: Path) -> None:
    """fairseq has it in two wrappers."""
    task, model, batch, _ = setting("tokens", data_of)
    expected = regularized("document_labels", task)(model, batch)[0]
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = ModuleProxyWrapper(torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True))
        assert_close(regularized("document_labels", task)(wrapped, batch)[0], expected)
    finally:
        torch.distributed.destroy_process_group()


@ALL
def test_validation_is_one_pass_of_the_base_criterion(data_of: Data, kind: str) -> None:
    task, model, batch, base = setting(kind, data_of)
    criterion = regularized(BASES[kind], task).eval()
    (loss, size, log), plain = criterion(model, batch), base(model, batch)
    assert torch.equal(loss, plain[0])
    assert size == plain[1]
    assert log.keys() == plain[2].keys()
    values = []
    for each, logged in ((criterion, log), (base, plain[2])):
        with metrics.aggregate(new_root=True) as meters:
            type(each).reduce_metrics([logged])
        values.append(meters.get_smoothed_values())
    assert values[0] == values[1]


def test_what_cannot_be_is_refused(data_of: Data) -> None:
    task, model, batch, _ = setting("tokens", data_of)
    with pytest.raises(ValueError, match="answer_spans is not for this task: give --criterion document_labels"):
        regularized("answer_spans", task)
    with pytest.raises(ValueError, match="--sar-roll 2: needs an encoder of this package"):
        regularized("document_labels", task)(lambda **inputs: None, batch)
    model.config.encoder_attention = "full"
    with pytest.raises(ValueError, match="--sar-roll 2 changes nothing with --encoder-attention full; give 0"):
        regularized("document_labels", task)(model, batch)
    model.config.encoder_attention = "window"
    with pytest.raises(ValueError, match="the split has no labels"):
        regularized("document_labels", task)(model, {**batch, "target": None})


@pytest.mark.parametrize(("name", "value"), [("alpha", -1), ("alpha", math.nan), ("alpha", math.inf), ("roll", -2)])
def test_numbers_below_zero_and_no_numbers_are_refused(name: str, value: float, data_of: Data) -> None:
    task, *_ = setting("tokens", data_of)
    with pytest.raises(ValueError, match=f"--sar-{name} must be .*, not {value}"):
        regularized("document_labels", task, **{name: value})


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("masked_lm", "error: argument --base-criterion: invalid choice: 'masked_lm' (choose from"),
        ("document_labels", "error: the criterion document_labels is not for this task: give --criterion masked_lm"),
    ],
)
def test_pre_training_has_no_regularization(
    run: Callable[..., Any], data_of: Data, tmp_path: Path, base: str, message: str
) -> None:
    flags = "--task masked_document_lm --arch hat_roberta_tiny --cpu --batch-size 2 --save-dir "
    flags += f"{tmp_path} --criterion self_attention_regularization --base-criterion {base}"
    result = run("fairseq-train", data_of("mlm"), "--user-dir", USER_DIR, *flags.split(), check=False)
    assert result.returncode
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_training_through_fairseq(data_of: Data, warm: WarmPython, tmp_path: Path) -> None:
    words = f"fairseq_cli.train {data_of('qa')} --user-dir {USER_DIR} --task question_answering {WINDOW}"
    words += "--arch hat_roberta_tiny --criterion self_attention_regularization --base-criterion answer_spans "
    words += "--sar-alpha 3 --sar-roll 8 --optimizer adam --lr 3e-3 --cpu --batch-size 8 --num-workers 0 --max-epoch 5 "
    words += "--log-format json --no-epoch-checkpoints --best-checkpoint-metric loss --checkpoint-activations "
    words += f"--save-dir {tmp_path}"
    text = warm.run(words.split(), tmp_path, tmp_path / "log")
    epochs, valid = (
        [json.loads(line) for line in re.findall(rf"\| {which} \| (\{{.*?\}})", text)] for which in ("train", "valid")
    )
    first, last = ({name: float(value) for name, value in epochs[n].items()} for n in (0, -1))
    assert last["train_nll_loss"] < 0.8 * first["train_nll_loss"]
    assert "valid_sar_loss" not in valid[0]
    assert last["train_loss"] == pytest.approx(2 * last["train_nll_loss"] + 3 * last["train_sar_loss"], abs=5e-3)
    assert (tmp_path / "checkpoint_best.pt").is_file()
