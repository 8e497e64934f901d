"""Without hierarchy the models are fairseq's Transformer, BART and RoBERTa: tensors, outputs and gradients."""

from argparse import Namespace
from typing import Any

import pytest
import torch
from building import PAD, TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from helpers import assert_close, assert_same_run
from small_networks import masked

LENGTHS = [17, 9, 2]


def twins(arch: str, reference_arch: str, flags: str, **args: Any) -> tuple[Any, Any]:
    """The model of `arch` with the weights of fairseq's model of `reference_arch`, and that."""
    vocabulary = Vocabulary(mask="roberta" in arch)
    plain = build(arch, f"{flags} --no-hierarchy", vocabulary).eval()
    config = {k: v for k, v in vars(plain.config).items() if k.startswith(("encoder", "decoder")) or "dropout" in k}
    config |= {"activation_fn": str(plain.config.activation_fn), "task": "translation"}
    positions = {"max_source_positions": 64, "max_target_positions": 32, "max_positions": 64}
    namespace = Namespace(arch=reference_arch, min_params_to_wrap=10**8, **config, **positions, **args)
    ARCH_CONFIG_REGISTRY[reference_arch](namespace)
    reference = ARCH_MODEL_REGISTRY[reference_arch].build_model(namespace, vocabulary).eval()
    initial = {name: tensor for name, tensor in plain.state_dict().items() if tensor.is_floating_point()}
    for name, tensor in reference.state_dict().items():
        if name in initial and reference_arch != "transformer":
            assert float(initial[name].std()) == pytest.approx(float(tensor.std()), rel=0.2), name
    plain.load_state_dict(dict(reference.state_dict()))  # through the hook that a --restore-file takes
    return plain, reference


@pytest.mark.parametrize(
    ("arch", "reference", "extra"),
    [
        ("hat_transformer_tiny", "transformer", ""),
        ("hat_transformer_tiny", "transformer", " --encoder-normalize-before --decoder-normalize-before"),
        ("hat_transformer_tiny", "transformer", " --activation-fn gelu"),
        ("hat_bart_base", "bart_base", ""),
    ],
)
def test_encoder_decoders(arch: str, reference: str, extra: str) -> None:
    plain, other = twins(arch, reference, TINY + extra, share_all_embeddings=True)
    source, target = documents(LENGTHS), targets(3, 8)
    run = lambda: plain(source, None, target)[0]  # noqa: E731
    assert_same_run(plain, [], run, lambda: other(source, (source != PAD).sum(1), target)[0], other=other)


@pytest.mark.parametrize("rate", ["--dropout 1", "--activation-dropout 1", "--attention-dropout 1"])
@pytest.mark.parametrize("extra", ["", " --encoder-normalize-before --decoder-normalize-before"])
def test_dropout_is_where_fairseq_has_it(rate: str, extra: str) -> None:
    """At rate 1 it is not random."""
    plain, other = twins("hat_transformer_tiny", "transformer", f"{TINY} {rate}{extra}", share_all_embeddings=True)
    source, target = documents([9]), targets(1, 8)
    assert_close(plain.train()(source, None, target)[0], other.train()(source, torch.tensor([9]), target)[0])


@pytest.mark.parametrize("extra", ["", " --encoder-normalize-before"])
def test_roberta(extra: str) -> None:
    plain, other = twins("hat_roberta_base", "roberta_base", f"{TINY_ENCODER} --max-positions 64{extra}")
    assert {name for name in plain.state_dict() if not name.endswith("_fingerprint")} == {
        name for name in other.state_dict() if not name.endswith(".version")
    }
    source = documents(LENGTHS)
    where = masked(source)
    assert_close(plain(source)[0][source != PAD], other(source)[0][source != PAD])
    run = lambda: plain(source, masked_tokens=where)[0]  # noqa: E731
    assert_same_run(plain, [], run, lambda: other(source, masked_tokens=where)[0], other=other)
    for model in (plain, other):
        model.register_classification_head("genre", num_classes=3)
    plain.load_state_dict(dict(other.state_dict()))
    head = {"features_only": True, "classification_head_name": "genre"}
    assert_close(plain(source, **head)[0], other(source, **head)[0])


def test_the_head_has_dropout_where_roberta_has_it() -> None:
    """With the same draws: before the dense layer and after it."""
    flags = f"{TINY_ENCODER} --max-positions 64 --pooler-dropout 0.4"
    plain, other = twins("hat_roberta_base", "roberta_base", flags)
    for model in (plain, other):
        model.register_classification_head("genre", num_classes=3)
    plain.load_state_dict(dict(other.state_dict()))
    states, logits = torch.randn(9, 2, plain.config.encoder_embed_dim), []
    for model in (plain, other):
        torch.manual_seed(5)
        head = model.classification_heads["genre"].train()
        logits.append(head(states[:, 0] if model is plain else states))
    assert_close(*logits)
