"""The models as wholes: sizes, equality with fairseq's, padding, precision, checkpointing, golden losses."""

from __future__ import annotations

import io

import pytest
import torch
from building import PAD, TINY, Vocabulary, build, documents, targets
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from golden import check_losses
from helpers import assert_close, is_new_part, outputs_and_gradients
from torch import Tensor

ARCHITECTURES = sorted(name for name in ARCH_MODEL_REGISTRY if name.startswith(("hat_bart", "hat_transformer")))
TWINS = pytest.mark.parametrize("twin", ["", " --no-hierarchy"], ids=["hat", "plain"])
EVERY_ARCHITECTURE = pytest.mark.parametrize("arch", ARCHITECTURES)
LENGTHS = [17, 9, 2]


def loss(model, source: Tensor, target: Tensor, roles: Tensor | None = None) -> Tensor:
    logits = model(source, None, target, roles=roles)[0]
    return torch.nn.functional.cross_entropy(logits[:, :-1].float().transpose(1, 2), target[:, 1:])


def count(arch: str, size: int, **args) -> int:
    with torch.device("meta"):  # shapes only: half a billion parameters in no memory
        model = build(arch, flags="", task=Vocabulary(size), **args)
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts_are_the_papers() -> None:
    hat = count("hat_bart_large", 50264, max_source_positions=3072, max_target_positions=1024)
    plain = count("hat_bart_large", 50264, max_source_positions=3072, max_target_positions=1024, no_hierarchy=True)
    assert (hat, plain) == (471_389_184, 408_387_584)


@pytest.mark.parametrize(
    ("arch", "added", "plain"),
    [
        ("hat_transformer_wmt_en_de", 37_798_912, 222e6),
        ("hat_transformer_wmt_en_cs", 37_798_912, 222e6),
        ("hat_transformer_ted_zh_en", 8_412_672, 55e6),
    ],
)
def test_translation_models_add_what_the_paper_adds(arch: str, added: int, plain: float) -> None:
    vocabulary = 44_600 if "wmt" in arch else 45_800
    twin = count(arch, vocabulary, no_hierarchy=True)
    assert count(arch, vocabulary) - twin == added
    assert twin == pytest.approx(plain, rel=0.01)


@pytest.mark.parametrize(
    "extra", ["", " --encoder-normalize-before --decoder-normalize-before", " --activation-fn gelu"]
)
def test_plain_twin_equals_fairseq_transformer(extra: str) -> None:
    vocabulary = Vocabulary()
    plain = build("hat_transformer_tiny", TINY + extra + " --no-hierarchy", vocabulary).eval()
    args = flags_for_fairseq("transformer", plain, share_all_embeddings=True)
    check_equal_to_fairseq(plain, ARCH_MODEL_REGISTRY["transformer"].build_model(args, vocabulary).eval())


def test_plain_twin_equals_fairseq_bart() -> None:
    vocabulary = Vocabulary()
    plain = build("hat_bart_base", TINY + " --no-hierarchy", vocabulary).eval()
    args = flags_for_fairseq("bart_base", plain)
    reference = ARCH_MODEL_REGISTRY["bart_base"].build_model(args, vocabulary).eval()
    check_equal_to_fairseq(plain, reference)


def flags_for_fairseq(arch: str, model, **args):
    from argparse import Namespace

    config = {k: v for k, v in vars(model.config).items() if k.startswith(("encoder", "decoder")) or "dropout" in k}
    positions = {"max_source_positions": 64, "max_target_positions": 32}
    namespace = Namespace(
        arch=arch, task="translation", activation_fn=str(model.config.activation_fn), **config, **positions, **args
    )
    ARCH_CONFIG_REGISTRY[arch](namespace)
    return namespace


def check_equal_to_fairseq(plain, reference) -> None:
    plain.load_state_dict(reference.state_dict())  # through the hook that a --restore-file takes
    source, target = documents(LENGTHS), targets(3, 8)
    expected = reference(source, (source != PAD).sum(1), target)[0]
    assert_close(plain(source, None, target)[0], expected)
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in source])
    assert_close(plain(left, None, target)[0], expected)


@EVERY_ARCHITECTURE
@TWINS
def test_every_parameter_gets_a_gradient_even_without_markers(arch: str, twin: str) -> None:
    model = build(arch, TINY + twin, Vocabulary(roles=3))
    source = documents(LENGTHS).masked_fill(documents(LENGTHS) == 0, 7)  # no marker anywhere
    roles = torch.where(source == PAD, PAD, 4 + torch.arange(17) % 3)
    loss(model, source, targets(3, 8), roles).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not missing
    zero = [name for name, p in model.named_parameters() if not p.grad.any()]
    # A softmax over one sentence does not depend on queries and keys; a key bias never changes a softmax.
    assert all(".k_proj." in name or "q_proj" in name for name in zero)


def test_without_hierarchy_there_is_no_hierarchical_tensor() -> None:
    model = build("hat_bart_base", TINY + " --no-hierarchy")
    assert not [name for name in model.state_dict() if is_new_part(name, model)]


def test_sentences_change_the_output() -> None:
    model = build("hat_transformer_tiny").eval()
    state = model.state_dict()
    source, target = documents(LENGTHS), targets(3, 8)
    before = model(source, None, target)[0]
    with torch.no_grad():
        state["encoder.hierarchical_encoder.layers.0.fc2.bias"].add_(torch.randn(24))
    assert not torch.allclose(model(source, None, target)[0], before, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@TWINS
def test_reduced_precision_is_close(dtype: torch.dtype, twin: str) -> None:
    model = build("hat_bart_base", TINY + twin).eval()
    source, target = documents([*LENGTHS, 2]), targets(4, 8)
    expected = model(source, None, target)[0]
    out, gradients = outputs_and_gradients(model.to(dtype), [], lambda: model(source, None, target)[0])
    assert out.dtype == dtype
    assert_close(out, expected, torch.bfloat16)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@TWINS
def test_checkpointed_activations_change_no_number(twin: str) -> None:
    flags = TINY.replace("--dropout 0", "--dropout 0.1") + twin
    source, target = documents(LENGTHS), targets(3, 8)
    runs = []
    for extra in ("", " --checkpoint-activations"):
        model = build("hat_transformer_tiny", flags + extra).train()
        torch.manual_seed(5)
        runs.append(outputs_and_gradients(model, [], lambda m=model: loss(m, source, target)))
    (plain, plain_gradients), (checkpointed, gradients) = runs
    assert torch.equal(plain, checkpointed)
    assert gradients.keys() == plain_gradients.keys()
    for name in gradients:
        assert torch.equal(gradients[name], plain_gradients[name]), name


@EVERY_ARCHITECTURE
@TWINS
def test_loaded_equals_fresh(arch: str, twin: str) -> None:
    vocabulary = Vocabulary(roles=2)
    model = build(arch, TINY + twin, vocabulary, seed=0).eval()
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    other = build(arch, TINY + twin, vocabulary, seed=1).eval()
    other.load_state_dict(torch.load(buffer, weights_only=True))
    source, target = documents(LENGTHS), targets(3, 8)
    roles = torch.where(source == PAD, PAD, 4)
    assert torch.equal(other(source, None, target, roles=roles)[0], model(source, None, target, roles=roles)[0])


def test_roles_are_added_and_missing_or_surplus_ones_are_refused() -> None:
    source, target = documents(LENGTHS), targets(3, 8)
    roles = torch.where(source == PAD, PAD, 4)
    with_roles = build("hat_transformer_tiny", task=Vocabulary(roles=2)).eval()
    without = build("hat_transformer_tiny").eval()
    assert "encoder.embed_segments.weight" not in without.state_dict()
    first = with_roles(source, None, target, roles=roles)[0]
    second = with_roles(source, None, target, roles=roles.where(roles == PAD, 5))[0]
    assert not torch.allclose(first, second)
    with pytest.raises(ValueError, match="--role-stream"):
        with_roles(source, None, target)
    with pytest.raises(ValueError, match="--role-stream"):
        without(source, None, target, roles=roles)


def test_unequal_widths_and_unequal_dictionaries_are_refused() -> None:
    with pytest.raises(ValueError, match="--encoder-embed-dim 24 and --decoder-embed-dim 48"):
        build("hat_transformer_tiny", TINY.replace("--decoder-embed-dim 24", "--decoder-embed-dim 48"))
    task = Vocabulary()
    task.target_dictionary = Dictionary()
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build("hat_transformer_tiny", task=task)


def test_separate_dictionaries_need_no_sharing() -> None:
    task = Vocabulary()
    task.target_dictionary = Vocabulary(33).target_dictionary
    model = build("hat_transformer", TINY, task)
    assert model(documents(LENGTHS), None, targets(3, 8, vocabulary=33))[0].size(-1) == 33


# The other architectures are one of these once their sizes are those of the tests.
NETWORKS = {
    "hat_bart_large": "hat_bart",
    "hat_transformer": "hat_transformer",
    "hat_transformer_ted_zh_en": "hat_transformer_shared_gelu",
    "hat_transformer_tiny": "hat_transformer_shared",
}


@pytest.mark.parametrize("arch", NETWORKS)
@TWINS
def test_golden_losses(arch: str, twin: str) -> None:
    model, source, target = build(arch, TINY + twin), documents(LENGTHS), targets(3, 8)
    check_losses(NETWORKS[arch] + ("_plain" if twin else ""), model, lambda: loss(model, source, target))


@pytest.mark.parametrize("flag", ["decoder-layers", "decoder-attention-heads", "encoder-ffn-embed-dim"])
def test_a_side_without_layers_heads_or_channels_is_refused(flag: str) -> None:
    with pytest.raises(ValueError, match=f"--{flag} 0: it must be at least 1"):
        build("hat_transformer", f"{TINY} --{flag} 0")
