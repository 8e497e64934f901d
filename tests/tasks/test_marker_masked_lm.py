"""`marker_masked_lm` against its definition, token by token; its refusals; and in training."""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build
from commands import USER_DIR
from fairseq.criterions import build_criterion
from torch import Tensor
from warm import WarmPython

Data = Callable[[str], Path]
# fairseq's `target`: the original token where it was masked, padding elsewhere. The second document is shorter, and
# begins without a marker; the last sentence of the first one has no masked token.
TOKENS = [[BOS, 9, 59, 7, BOS, 59, 59, 8, 12, BOS, 7], [5, 59, BOS, 6, 59, PAD, PAD, PAD, PAD, PAD, PAD]]
TARGET = [[PAD, PAD, 11, PAD, PAD, 14, 30, PAD, 12, PAD, PAD], [PAD, 21, PAD, PAD, 22, *[PAD] * 6]]
MARKERS = {(0, 2): 0, (0, 5): 4, (0, 6): 4, (0, 8): 4, (1, 1): 0, (1, 4): 2}  # of each masked token


class Task(Vocabulary):
    default_criterion = "masked_lm"


TASK = Task(mask=True)


def criterion(weight: float = 0.7, task: Any = TASK) -> Any:
    return build_criterion(Namespace(criterion="marker_masked_lm", marker_weight=weight), task)


def batch(target: Tensor) -> dict[str, Any]:
    return {"net_input": {"src_tokens": torch.tensor(TOKENS)}, "target": target, "ntokens": 16, "nsentences": 2}


def gradients(model: Any, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("flags", ["", "--sentence-queries bos --encoder-attention window --attention-window 3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_and_gradients_are_those_of_the_definition(dtype: torch.dtype, flags: str) -> None:
    model = build("hat_roberta_tiny", f"{TINY_ENCODER} {flags}", TASK, max_positions=64).to(dtype)
    states = model(torch.tensor(TOKENS), features_only=True)[0]
    own, from_marker = torch.zeros(()), torch.zeros(())
    for (row, place), marker in MARKERS.items():
        word = TARGET[row][place]
        own = own - model.lm_logits(states[row, place]).float().log_softmax(dim=0)[word]
        from_marker = from_marker - model.lm_logits(states[row, marker]).float().log_softmax(dim=0)[word]
    loss, size, log = criterion()(model, batch(torch.tensor(TARGET)))
    exact = dtype == torch.float32
    assert size == len(MARKERS) == log["sample_size"]
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if exact else {"rtol": 3e-2, "atol": 3e-2}
    torch.testing.assert_close(loss, own + 0.7 * from_marker, **tolerance)
    torch.testing.assert_close(torch.stack([log["nll_loss"], log["marker_loss"]]), torch.stack([own, from_marker]),
                               **tolerance)  # fmt: skip
    expected = gradients(model, own + 0.7 * from_marker)
    for actual, reference in zip(gradients(model, loss), expected, strict=True):
        assert (actual - reference).norm() <= (1e-4 if exact else 0.1) * reference.norm() + 1e-6


def test_a_batch_without_masked_tokens_has_no_loss() -> None:
    model = build("hat_roberta_tiny", TINY_ENCODER, TASK, max_positions=64)
    loss, size, _ = criterion()(model, batch(torch.full_like(torch.tensor(TARGET), PAD)))
    assert loss == 0
    assert size == 0
    assert not any(each.any() for each in gradients(model, loss))


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("hat_roberta_tiny", "--no-hierarchy"),
        ("hat_roberta_tiny", "--span-pooling mean"),
        ("ernie_sparse_tiny", ""),
        ("hierarchical_transformer_tiny", ""),
    ],
)
def test_models_that_read_no_markers_are_refused(arch: str, flags: str) -> None:
    own = "" if arch.startswith("hierarchical") else TINY_ENCODER
    model = build(arch, f"{own} {flags}", TASK, max_positions=64)
    with pytest.raises(ValueError, match=r"needs layers that read markers: --arch hat_roberta_\*"):
        criterion()(model, batch(torch.tensor(TARGET)))


@pytest.mark.parametrize("weight", [0, -1, float("inf"), float("nan")])
def test_weights_are_positive_numbers(weight: float) -> None:
    with pytest.raises(ValueError, match="--marker-weight must be "):
        criterion(weight)


@pytest.mark.slow
def test_training_and_another_task(data_of: Data, run: Callable[..., Any], warm: WarmPython, tmp_path: Path) -> None:
    flags = f"--user-dir {USER_DIR} --arch hat_roberta_tiny --criterion marker_masked_lm --marker-weight 2 --cpu "
    flags += f"--batch-size 8 --num-workers 0 --save-dir {tmp_path} --optimizer adam --lr 3e-3 --max-epoch 8 "
    flags += "--log-format json --no-epoch-checkpoints --tokens-per-sample 512 --sample-break-mode eos "
    words = f"fairseq_cli.train {data_of('mlm')} --task masked_document_lm {flags} --checkpoint-activations"
    text = warm.run(words.split(), tmp_path, tmp_path / "log")
    epochs, valid = (
        [json.loads(line) for line in re.findall(rf"\| {which} \| (\{{.*?\}})", text)] for which in ("train", "valid")
    )
    first, last = ({name: float(value) for name, value in epochs[n].items()} for n in (0, -1))
    assert last["train_marker_loss"] < 0.95 * first["train_marker_loss"]
    assert "valid_marker_loss" in valid[0]
    assert last["train_loss"] == pytest.approx(last["train_nll_loss"] + 2 * last["train_marker_loss"], abs=5e-3)
    assert all(
        log[f"{which}_bpc"] == log[f"{which}_nll_loss"] for which, log in [("train", epochs[0]), ("valid", valid[0])]
    )
    flags = f"--user-dir {USER_DIR} --arch hat_roberta_tiny --criterion marker_masked_lm --batch-size 2 --cpu"
    result = run("fairseq-train", data_of("segments"), "--task", "segment_classification", *flags.split(), check=False)
    assert result.returncode
    assert "needs --task masked_document_lm" in result.stderr.splitlines()[-1]
