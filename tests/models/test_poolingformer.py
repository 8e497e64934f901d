"""Poolingformer's architectures: sizes, the start from RoBERTa and BART, and one flag for each row of Tables 5 to 7."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from golden import check_losses
from helpers import assert_close, is_new_part
from torch import Tensor

from hat_fairseq.modules.pooling_attention import PoolingAttention, SecondLevel
from hat_fairseq.modules.sliding_window import SlidingWindowAttention
from hat_fairseq.weights.rename import parse_flags

SHORT = " --attention-window 4 --pooling-window 9"
ROBERTA, BART = ("poolingformer_base", TINY_ENCODER), ("poolingformer_bart_base", TINY)


def small(which: tuple[str, str], layers: str = "1", extra: str = "", **args: object) -> Any:
    arch, flags = which
    vocabulary = Vocabulary(mask=arch == "poolingformer_base")
    return build(arch, f"{flags}{SHORT} --encoder-attention-layers {layers}{extra}", vocabulary, **args)


def count(arch: str, size: int, **args: object) -> int:
    with torch.device("meta"):
        model = build(arch, flags="", task=Vocabulary(size), **args)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("arch", "plain", "width", "layers", "expected"),
    [
        ("poolingformer_base", "hat_roberta_base", 768, 3, 132_787_545),
        ("poolingformer_large", "hat_roberta_large", 1024, 6, 378_035_289),
        ("poolingformer_bart_base", "hat_bart_base", 768, 3, 156_554_496),
        ("poolingformer_bart_large", "hat_bart_large", 1024, 6, 440_973_312),
    ],
)
def test_parameter_counts(arch: str, plain: str, width: int, layers: int, expected: int) -> None:
    """Three projections, and the weights of LDConv for keys and values, in each layer with two levels."""
    new = layers * (3 * (width * width + width) + 2 * 5 * width)
    sizes = {"max_source_positions": 16384, "max_target_positions": 1024} if "bart" in arch else {"max_positions": 4096}
    vocabulary = 50264 if "bart" in arch else 50265
    total = count(arch, vocabulary, **sizes)
    assert total == count(plain, vocabulary, no_hierarchy=True, **sizes) + new
    assert total == expected


def test_layers_and_numbers_are_the_papers() -> None:
    with torch.device("meta"):
        encoders = {
            "6-8": build("poolingformer_base", ""),
            "15-20": build("poolingformer_large", ""),
            "6-11": build("poolingformer_bart_large", "", max_source_positions=4096),
        }
    for layers, model in encoders.items():
        encoder = model.encoder if hasattr(model, "decoder") else model.core
        first, last = map(int, layers.split("-"))
        for number, layer in enumerate(encoder.layers):
            kind = PoolingAttention if first <= number <= last else SlidingWindowAttention
            assert type(layer.self_attn) is kind and layer.self_attn.window == 128
            assert kind is SlidingWindowAttention or layer.self_attn.level == SecondLevel(
                512, 5, 4, "ldconv", cells="document"
            )
        assert model.config.global_tokens == ("first" if "11" in layers else "question")
        assert model.config.no_hierarchy and model.config.extend_positions == "tile"


@pytest.mark.parametrize("flags", ["poolingformer_large", "hat_bart_base --encoder-attention pooling"])
def test_a_new_model_has_the_cells_of_the_paper(flags: str) -> None:
    """`build` gives no setting, as older checkpoints: there the cells are those of the document."""
    words = ["--arch", *flags.split()]
    assert parse_flags(words).pooling_cells == "token"
    assert parse_flags([*words, "--pooling-cells", "document"]).pooling_cells == "document"


@pytest.mark.parametrize("which", [ROBERTA, BART], ids=["RoBERTa", "BART"])
def test_the_start_from_a_pretrained_model(which: tuple[str, str]) -> None:
    """Exactly the second level is new, positions are copies, and without the second level the output is the same."""
    plain_arch = which[0].replace("poolingformer_bart", "hat_bart").replace("poolingformer", "hat_roberta")
    is_bart, length = "bart" in plain_arch, 12
    positions = {"max_source_positions" if is_bart else "max_positions": length}
    vocabulary = Vocabulary(mask=not is_bart)
    plain = build(plain_arch, which[1] + " --no-hierarchy", vocabulary, seed=7, **positions).eval()
    state = {name: tensor for name, tensor in plain.state_dict().items() if not name.endswith("_fingerprint")}
    model = small(which, **dict.fromkeys(positions, 3 * length + 1), seed=1).eval()
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(dict(state))
    new = [name for name in own if is_new_part(name, model)]
    assert len(new) == 8 and all(".layers.1.self_attn.pooled." in name for name in new)
    table = next(name for name in state if "encoder" in name and name.endswith("embed_positions.weight"))
    for name, tensor in model.state_dict().items():
        if name == table:
            assert torch.equal(tensor, torch.cat([state[name], *[state[name][2:]] * 2, state[name][2:3]]))
        elif not name.endswith("_fingerprint"):
            assert torch.equal(tensor, own[name] if name in new else state[name]), name
    layers = (model.encoder if is_bart else model.encoder.sentence_encoder).layers
    torch.nn.init.zeros_(layers[1].self_attn.pooled.v_proj.weight)
    source = documents([5, 3])  # within the window of 4
    for network in (model, plain):
        network.result = network(source, None, targets(2, 4))[0] if is_bart else network(source)[0][source != 1]
    assert_close(model.result, plain.result)


@pytest.mark.parametrize(
    "flags",
    [
        "--attention-window 6",
        "--pooling-window 40 --pooling-kernel 8 --pooling-stride 8",
        "--pooling-cells token",
        "--key-pooling mean",
        "--key-pooling max",
        "--key-pooling mean-ldconv",
        "--pooling-variant mix",
        "--pooling-variant share-weights",
        "--encoder-attention-layers 0-1",
    ],
)
def test_every_row_of_the_ablations_is_a_flag(flags: str) -> None:
    """It changes the output, and every parameter gets a gradient."""
    source = documents([33, 18])
    outputs = []
    for extra in ("", f" {flags}"):
        torch.manual_seed(0)
        model = small(ROBERTA, extra=extra, max_positions=40).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        outputs.append(model(source)[0])
    assert not torch.allclose(*outputs, atol=1e-5)
    outputs[1].square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_golden_losses() -> None:
    """With the cells of the document, which a model without the setting has."""
    source, target = documents([33, 18]), targets(2, 8)
    hat = build("hat_bart_base", f"{TINY} --encoder-attention pooling{SHORT} --global-tokens first")
    for name, model in (("poolingformer_bart", small(BART)), ("hat_bart_pooling", hat)):
        torch.manual_seed(0)
        check_losses(name, model.train(), lambda m=model: loss_of(m(source, None, target)[0], target))
    encoder = small(ROBERTA, max_positions=40)
    check_losses("poolingformer", encoder.train(), lambda: loss_of(encoder(source)[0], source))


def loss_of(logits: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits[:, :-1].float().transpose(1, 2), target[:, 1:])
