"""What holds for every network: golden losses, gradients, padding, precision, checkpoints, synchronisations."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from building import BOS, PAD, TINY, build, documents, targets
from commands import REPOSITORY
from helpers import assert_close, outputs_and_gradients
from small_networks import NETWORKS, masked, model_of, run, source_of
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

NAMES = pytest.mark.parametrize("name", NETWORKS)


def loss(model: Any, source: Tensor, kind: str) -> Tensor:
    if kind == "targets":
        wanted = targets(len(source), 8)
        return F.cross_entropy(model(source, None, wanted)[0][:, :-1].transpose(1, 2), wanted[:, 1:])
    if kind == "next":
        return F.cross_entropy(model(source)[0][:, :-1].transpose(1, 2), source[:, 1:])
    where = masked(source) if kind == "masked" else source.ne(PAD)
    hidden = source.masked_fill(where, 59) if kind == "masked" else source  # <mask>, the dictionary's last word
    return F.cross_entropy(model(hidden, masked_tokens=where)[0], source[where])


STEPS = (0, 4, 9)  # the losses that are recorded


def check_losses(name: str, model: nn.Module, loss: Callable[[], Tensor]) -> None:
    """Ten steps of Adam in fp32 on a CPU; compares losses with those of the file, which `HAT_GOLDEN=1` writes anew."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(max(STEPS) + 1):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    chosen, path = [losses[step] for step in STEPS], REPOSITORY / f"tests/golden/{name}.json"
    if os.environ.get("HAT_GOLDEN"):
        path.write_text(json.dumps([round(value, 4) for value in chosen]) + "\n", encoding="utf-8")
    assert chosen == pytest.approx(json.loads(path.read_text(encoding="utf-8")), abs=2e-3)


@NAMES
def test_golden_losses(name: str) -> None:
    model = model_of(name)
    check_losses(name, model, lambda: loss(model, source_of(name), NETWORKS[name][3]))


@NAMES
def test_every_parameter_gets_a_gradient_even_without_markers(name: str) -> None:
    model, source = model_of(name), source_of(name)
    for tokens in (source.masked_fill(source == BOS, 7), source):
        model.zero_grad()
        run(model, tokens).square().sum().backward()
        assert [key for key, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []
    # A key bias never changes a softmax.
    assert not [key for key, p in model.named_parameters() if not p.grad.any() and "k_proj" not in key]


def test_a_pre_norm_encoder_ends_with_norms() -> None:
    """The states of tokens and those of sentences; no golden model is pre-norm."""
    model = build("hat_transformer", f"{TINY} --encoder-normalize-before").eval()
    out = model.encoder(documents([17, 9, 2]))
    for states in (out.tokens, out.spans):
        assert_close(states.mean(dim=-1), torch.zeros(states.shape[:2]))
        assert_close(states.var(dim=-1, correction=0), torch.ones(states.shape[:2]), torch.bfloat16)


@NAMES
def test_batch_mates_and_padding_on_either_side_do_not_matter(name: str) -> None:
    model, source = model_of(name).eval(), source_of(name)
    wider = torch.cat([source, torch.full((len(source), 3), PAD)], dim=1)
    batches = [source, wider, torch.cat([wider, torch.full_like(wider[:1], PAD)])]
    if "hierarchical" not in name:  # where padding counts as a position
        batches.append(torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in source]))
    out = [run(model, batch) for batch in batches]
    assert all(each.isfinite().all() for each in out)
    for row, length in enumerate(NETWORKS[name][2]):
        alone = run(model, source[row : row + 1, :length], slice(row, row + 1))[0]
        for batch, logits in zip(batches, out, strict=True):
            assert_close(logits[row] if hasattr(model, "decoder") else logits[row, batch[row] != PAD], alone)


@NAMES
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_is_close(dtype: torch.dtype, name: str) -> None:
    source = source_of(name)
    real = slice(None) if NETWORKS[name][3] == "targets" else source != PAD
    expected = run(model_of(name).eval(), source)[real]
    model = model_of(name).eval().to(dtype)
    out, gradients = outputs_and_gradients(model, [], lambda m=model: run(m, source)[real])
    assert out.dtype == dtype
    assert_close(out, expected, torch.bfloat16)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@NAMES
def test_checkpointed_activations_change_no_number(name: str) -> None:
    runs = []
    for extra in (" --dropout 0.1", " --dropout 0.1 --checkpoint-activations"):
        model = model_of(name, extra=extra)
        torch.manual_seed(5)
        runs.append(outputs_and_gradients(model, [], lambda m=model: run(m, source_of(name))))
    (plain, gradients), (checkpointed, others) = runs
    assert torch.equal(plain, checkpointed)
    assert gradients.keys() == others.keys()
    assert all(torch.equal(gradient, others[key]) for key, gradient in gradients.items())


class CountSynchronisations(TorchDispatchMode):
    """Counts the numbers that leave the device; `Tensor.tolist` reads all of a tensor at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.count, tolist = 0, Tensor.tolist

        def counted(tensor: Tensor) -> Any:
            self.count += 1
            return tolist(tensor)

        monkeypatch.setattr(Tensor, "tolist", counted)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
        return function(*args, **(kwargs or {}))


@NAMES
def test_a_forward_pass_synchronises_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, source = model_of(name).eval(), source_of(name)
    with torch.no_grad(), CountSynchronisations(monkeypatch) as mode:
        run(model, source)
    assert mode.count == 1
