"""Every network with every encoder attention in every precision computes nearly what it computes in fp32.

And of a document it computes the same in every batch, to the last bit or nearly.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import pytest
import small_networks
import torch
from attention_cases import ATTENTION_CASES
from building import PAD, TINY, build, documents
from helpers import outputs_and_gradients, rows_are_alone
from torch import Tensor

from hat_fairseq.kernels import set_precision, torch_private
from hat_fairseq.modules.pooling import CELL_POOLINGS
from hat_fairseq.modules.pooling_attention import VARIANTS


@dataclass(frozen=True)
class Precision:
    """How a model gets it, in what its calls run, the largest relative error, and whether the model can be trained."""

    prepare: Callable[[Any], object]
    error: float
    context: Callable[[], AbstractContextManager[object]] = nullcontext
    trains: bool = False


def inference(name: str) -> Callable[[Any], None]:
    return lambda model: set_precision(model, name)


def autocast(dtype: torch.dtype) -> Callable[[], AbstractContextManager[object]]:
    return lambda: torch.autocast("cpu", dtype=dtype)


PRECISIONS = {
    "--precision fp32": Precision(inference("fp32"), 1e-5),
    "--memory-efficient-bf16": Precision(lambda model: model.to(torch.bfloat16), 0.06, trains=True),
    "--memory-efficient-fp16": Precision(lambda model: model.to(torch.float16), 0.02, trains=True),
    "autocast in bf16": Precision(lambda model: model, 0.06, autocast(torch.bfloat16), trains=True),
    "autocast in fp16": Precision(lambda model: model, 0.02, autocast(torch.float16), trains=True),
}
for name, is_able in (("bf16", torch_private.BF16), ("int8", torch_private.multiplies_int8())):  # on this processor
    if is_able:
        PRECISIONS[f"--precision {name}"] = Precision(inference(name), 0.06)
LENGTHS = [33, 18]
SLOW = ("--memory-efficient-fp16", "autocast in bf16", "autocast in fp16")
EACH = pytest.mark.parametrize(
    "precision", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PRECISIONS]
)


def attentions() -> Iterator[str]:
    """The names and flags of all; pooling attention with every pooling and variant."""
    for name, options in ATTENTION_CASES.items():
        if not name.startswith("pooling"):
            yield " ".join([name.split()[0], *(f"--{key.replace('_', '-')} {value}" for key, value in options.items())])
    pooling = "pooling --attention-window 4 --pooling-window 12"
    for kind, variant in product(CELL_POOLINGS, ("", *(f" --pooling-variant {name}" for name in VARIANTS))):
        yield f"{pooling} --key-pooling {kind}{variant}"
    yield f"{pooling} --global-tokens first"


def vary(model: Any) -> Any:
    """The model in eval mode, with parameters that begin at zero drawn, so that they matter."""
    generator = torch.Generator().manual_seed(2)
    for name, parameter in model.named_parameters():
        if "pooling" in name:
            parameter.data.normal_(generator=generator)
    return model.eval()


@lru_cache(maxsize=2)
def in_fp32(build_model: Callable[..., Any], *words: str) -> tuple[Any, Tensor, Tensor, Any]:
    """A model, which stays as it is, documents, their logits, and which of these count."""
    model, source, real = build_model(*words)
    with torch.no_grad():
        return vary(model), source, small_networks.run(model, source)[real], real


def check(precision: Precision, build_model: Callable[..., Any], *words: str) -> None:
    """Compares the logits, and those that a gradient needs, with those in fp32."""
    model, source, expected, real = in_fp32(build_model, *words)
    model = copy.deepcopy(model)
    with torch.no_grad():
        precision.prepare(model)
        with precision.context():
            assert_near(small_networks.run(model, source)[real], expected, precision.error)
    if precision.trains:
        with precision.context():
            out, gradients = outputs_and_gradients(model, [], lambda: small_networks.run(model, source)[real])
        assert_near(out, expected, precision.error)
        assert gradients
        assert all(gradient.isfinite().all() for gradient in gradients.values())


def assert_near(actual: Tensor, expected: Tensor, error: float) -> None:
    difference = float((actual.float() - expected).norm() / expected.norm())
    assert difference < error, f"relative error {difference:.4f}"


@EACH
@pytest.mark.parametrize("attention", [*attentions()])
def test_an_encoder_attention(attention: str, precision: str) -> None:
    """In HAT, so with its hierarchy on top."""
    check(PRECISIONS[precision], with_attention, attention)


def with_attention(attention: str) -> tuple[Any, Tensor, Any]:
    return build("hat_bart_base", f"{TINY} --encoder-attention {attention}"), documents(LENGTHS), slice(None)


@EACH
@pytest.mark.parametrize("name", small_networks.NETWORKS)
def test_a_network(name: str, precision: str) -> None:
    check(PRECISIONS[precision], network, name)


def network(name: str) -> tuple[Any, Tensor, Any]:
    source = small_networks.source_of(name)
    real = slice(None) if small_networks.NETWORKS[name][3] == "targets" else source != PAD
    return small_networks.model_of(name), source, real


LONG = [300, 151, 77, 40]
WIDE = "-embed-dim 64 --{0}-ffn-embed-dim 128 --{0}-layers 2 --{0}-attention-heads 4".format
SEQ2SEQ = f"--encoder{WIDE('encoder')} --decoder{WIDE('decoder')}"
ENCODER = f"--encoder{WIDE('encoder')} --max-positions 320"
# What an encoder computes of a document does not depend on the others to the last bit in bf16 and int8, where True.
STATES = {
    "hat_bart_base": (SEQ2SEQ, True),
    "hat_bart_base --no-hierarchy": (SEQ2SEQ, True),
    "hat_transformer_tiny --decoder-kv-heads 2": (SEQ2SEQ, True),
    "hat_roberta_base --no-hierarchy": (ENCODER, True),
    "hat_roberta_base": (ENCODER, False),
    "hat_modernbert_base --encoder-attention-layers 1 --no-hierarchy": (ENCODER, False),
    "hat_jina_v3 --no-hierarchy": (ENCODER, True),
    "hat_eurobert_210m --encoder-family eurobert:kv_heads=2 --no-hierarchy": (ENCODER, False),
    "ernie_sparse_base --sparse-block 16": (ENCODER, False),
    "poolingformer_base --encoder-attention-layers 1": (ENCODER, False),
    "hat_bart_base --encoder-attention window --attention-window 32": (SEQ2SEQ, False),
    "hat_bart_base --encoder-attention pooling --attention-window 32 --pooling-window 64": (SEQ2SEQ, False),
    "hat_bart_base --encoder-attention block-sparse --sparse-block 16": (SEQ2SEQ, False),
}
LARGEST = {"fp32": 1e-6, "bf16": 5e-3, "int8": 5e-3}  # relative difference, where it is not none


@pytest.mark.parametrize("precision", [name.split()[1] for name in PRECISIONS if name.startswith("--precision")])
@pytest.mark.parametrize("name", STATES)
def test_a_document_alone_and_in_a_batch(name: str, precision: str) -> None:
    """docs/speed.md says for which models a batch changes no bit, and by how much it changes the others."""
    (arch, _, more), (flags, exact) = name.partition(" "), STATES[name]
    positions = {"max_source_positions": 320} if flags is SEQ2SEQ else {}
    model = vary(build(arch, f"{flags} {more}", **positions))
    set_precision(model, precision)
    source, is_alone = documents(LONG, sentence=16), rows_are_alone(precision)
    with torch.no_grad():
        together = states_of(model, source)
        for row, length in enumerate(LONG):
            alone = states_of(model, source[row : row + 1, :length])[0]
            if exact and is_alone and precision != "fp32" and torch_private.BF16:  # else int8 has keys in fp32
                assert torch.equal(together[row, :length], alone)
            assert_near(together[row, :length], alone.float(), LARGEST[precision] * (1 if is_alone else 6))


def states_of(model: Any, source: Tensor) -> Tensor:
    """(B, T, C) states of the tokens."""
    out = model.encoder(source)
    return out if isinstance(out, Tensor) else out.tokens
