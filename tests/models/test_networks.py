"""What holds for every network: golden losses, gradients, padding, precision, checkpoints, synchronisations."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from building import BOS, PAD, SMALL_HIERARCHICAL, TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from commands import REPOSITORY
from helpers import assert_close, outputs_and_gradients
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

PLAIN, SHORT = " --no-hierarchy", " --attention-window 4 --pooling-window 9"
POOLING = f"{SHORT} --encoder-attention-layers 1"
SPARSE = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 1 --max-positions 140"
SEGMENTS = f"{SMALL_HIERARCHICAL}S|SD|D|SD --segment-positions"
# By the name of the golden file: architecture, flags, lengths of the documents, what the loss is of.
NETWORKS = {
    "hat_bart": ("hat_bart_large", TINY, [17, 9, 2], "targets"),
    "hat_bart_plain": ("hat_bart_large", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer": ("hat_transformer", TINY, [17, 9, 2], "targets"),
    "hat_transformer_plain": ("hat_transformer", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer_shared_gelu": ("hat_transformer_ted_zh_en", TINY, [17, 9, 2], "targets"),
    "hat_transformer_shared_gelu_plain": ("hat_transformer_ted_zh_en", TINY + PLAIN, [17, 9, 2], "targets"),
    "hat_transformer_shared": ("hat_transformer_tiny", TINY, [17, 9, 2], "targets"),
    "hat_transformer_shared_plain": ("hat_transformer_tiny", TINY + PLAIN, [17, 9, 2], "targets"),
    "poolingformer_bart": ("poolingformer_bart_base", TINY + POOLING, [33, 18], "targets"),
    "hat_bart_pooling": (
        "hat_bart_base",
        f"{TINY} --encoder-attention pooling{SHORT} --global-tokens first",
        [33, 18],
        "targets",
    ),
    "hat_roberta": ("hat_roberta_base", f"{TINY_ENCODER} --max-positions 64", [17, 13, 5, 2], "masked"),
    "hat_roberta_bos": (
        "hat_roberta_base",
        f"{TINY_ENCODER} --max-positions 64 --sentence-queries bos",
        [17, 13, 5, 2],
        "masked",
    ),
    "hat_transformer_mean": ("hat_transformer", f"{TINY} --span-pooling mean", [17, 9, 2], "targets"),
    "hat_roberta_mean": (
        "hat_roberta_base",
        f"{TINY_ENCODER} --max-positions 64 --span-pooling mean",
        [17, 13, 5, 2],
        "masked",
    ),
    "hierarchical_transformer_mean": (
        "hierarchical_transformer",
        f"{SEGMENTS} add --span-pooling mean",
        [23, 17],
        "all",
    ),
    "hat_roberta_plain": ("hat_roberta_base", f"{TINY_ENCODER} --max-positions 64{PLAIN}", [17, 13, 5, 2], "masked"),
    "poolingformer": ("poolingformer_base", f"{TINY_ENCODER}{POOLING} --max-positions 40", [33, 18], "next"),
    "ernie_sparse": ("ernie_sparse_base", SPARSE, [53, 18], "next"),
    "bigbird": ("ernie_sparse_base", f"{SPARSE}{PLAIN} --sparse-first 1 --sparse-last 1", [53, 18], "next"),
    "hierarchical_transformer_positions_add": ("hierarchical_transformer", f"{SEGMENTS} add", [23, 17], "all"),
    "hierarchical_transformer_positions_none": ("hierarchical_transformer", f"{SEGMENTS} none", [23, 17], "all"),
}
# The parts of today's encoders: rotary positions of two bases, gated units, RMS norms, shared keys, no biases.
ROTARY = "--rotary 10000 --encoder-kv-heads 2"
LOCAL = "--rotary-local 100 --local-layers 1"
PRE_NORM = "--encoder-normalize-before --no-first-norm --no-norm-bias --no-attention-bias --no-ffn-bias"
NETWORKS |= {
    "modernbert": (
        "hat_modernbert_base",
        f"{TINY_ENCODER} --encoder-attention-layers 1 --local-layers 1 --attention-window 4 --max-positions 64",
        [33, 18],
        "masked",
    ),
    "eurobert": ("hat_eurobert_210m", f"{TINY_ENCODER} --encoder-kv-heads 2{PLAIN}", [17, 13, 5, 2], "masked"),
    "modern_bart": (
        "hat_bart_base",
        f"{TINY} {ROTARY} {LOCAL} {PRE_NORM} --activation-fn geglu",
        [17, 9, 2],
        "targets",
    ),
    "modern_poolingformer": (
        "poolingformer_base",
        f"{TINY_ENCODER}{POOLING} --max-positions 40 {ROTARY} --activation-fn swiglu --rms-norm",
        [33, 18],
        "next",
    ),
    "modern_ernie_sparse": ("ernie_sparse_base", f"{SPARSE} {ROTARY} --activation-fn geglu", [53, 18], "next"),
    "modern_hierarchical_transformer": (
        "hierarchical_transformer",
        f"{SEGMENTS} add {ROTARY} {LOCAL} {PRE_NORM} --activation-fn geglu --segment-window 2",
        [23, 17],
        "all",
    ),
}
NAMES = pytest.mark.parametrize("name", NETWORKS)


def model_of(name: str, seed: int = 0, extra: str = "") -> Any:
    arch, flags, _, kind = NETWORKS[name]
    return build(arch, flags + extra, Vocabulary(mask=kind in ("masked", "next")), seed=seed)


def source_of(name: str) -> Tensor:
    return documents(NETWORKS[name][2])


def run(model: Any, source: Tensor, rows: slice = slice(None)) -> Tensor:
    """(B, ., V) logits; the targets of a sequence-to-sequence model are those of `rows` of the batch."""
    if hasattr(model, "decoder"):
        return model(source, None, targets(9, 8)[rows][: len(source)])[0]
    return model(source)[0]


def loss(model: Any, source: Tensor, kind: str) -> Tensor:
    if kind == "targets":
        wanted = targets(len(source), 8)
        return F.cross_entropy(model(source, None, wanted)[0][:, :-1].transpose(1, 2), wanted[:, 1:])
    if kind == "next":
        return F.cross_entropy(model(source)[0][:, :-1].transpose(1, 2), source[:, 1:])
    where = masked(source) if kind == "masked" else source.ne(PAD)
    hidden = source.masked_fill(where, 59) if kind == "masked" else source  # <mask>, the dictionary's last word
    return F.cross_entropy(model(hidden, masked_tokens=where)[0], source[where])


def masked(tokens: Tensor) -> Tensor:
    """(B, T) True = a masked word, which is every third one."""
    return (tokens > 3) & (torch.arange(tokens.size(1)) % 3 == 1)


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
def test_reduced_precision_is_close(name: str) -> None:
    source = source_of(name)
    real = slice(None) if NETWORKS[name][3] == "targets" else source != PAD
    expected = run(model_of(name).eval(), source)[real]
    for dtype in (torch.bfloat16, torch.float16):
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
    assert torch.equal(plain, checkpointed) and gradients.keys() == others.keys()
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
