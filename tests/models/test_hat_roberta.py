"""`hat_roberta` as a whole: sizes, equality with fairseq's RoBERTa, padding, gradients, heads, golden losses."""

from __future__ import annotations

import io
from argparse import Namespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build, documents
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from golden import check_losses
from helpers import assert_close, outputs_and_gradients
from torch import Tensor

VARIANTS = pytest.mark.parametrize(
    "variant", ["", " --sentence-queries bos", " --no-hierarchy"], ids=["tokens", "bos", "plain"]
)
HIERARCHIES = pytest.mark.parametrize("queries", ["tokens", "bos"])
ARCHITECTURES = pytest.mark.parametrize("arch", ["hat_roberta_base", "hat_roberta_large"])
OF = pytest.mark.parametrize("of", ["document", "segment", "token"])
LENGTHS = [17, 13, 5, 2]


def model_of(variant: str = "", arch: str = "hat_roberta_base", **options: Any) -> Any:
    return build(arch, TINY_ENCODER + variant, Vocabulary(mask=True), **({"max_positions": 64} | options))


def masked(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Every third word becomes `<mask>` (the last word of the dictionary); also where."""
    where = (tokens > 3) & (torch.arange(tokens.size(1)) % 3 == 1)
    return tokens.masked_fill(where, 59), where


def masked_lm_loss(model: Any, tokens: Tensor) -> Tensor:
    source, where = masked(tokens)
    logits = model(source, src_lengths=None, src_id=None, masked_tokens=where)[0]
    return F.cross_entropy(logits.float(), tokens[where])


@pytest.mark.parametrize(
    ("arch", "plain", "hat"),
    [("hat_roberta_base", 124_696_665, 153_063_513), ("hat_roberta_large", 355_411_033, 456_221_785)],
)
def test_parameter_counts(arch: str, plain: int, hat: int) -> None:
    """RoBERTa's own count, and an attention and a norm more in each layer."""
    vocabulary, counts = Vocabulary(50265, mask=True), []
    with torch.device("meta"):
        for options in ({"no_hierarchy": True}, {}, {"sentence_queries": "bos"}):
            model = build(arch, "", vocabulary, **options)
            counts.append(sum(parameter.numel() for parameter in model.parameters()))
    width, layers = model.config.encoder_embed_dim, model.config.encoder_layers
    assert counts == [plain, hat, hat]
    assert hat - plain == layers * (4 * (width * width + width) + 2 * width)


def fairseq_roberta(plain: Any, vocabulary: Vocabulary, normalize_before: bool) -> Any:
    torch.manual_seed(5)
    names = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads")
    sizes = {f"encoder_{name}": getattr(plain.config, f"encoder_{name}") for name in names}
    args = Namespace(arch="roberta_base", max_positions=64, encoder_normalize_before=normalize_before, **sizes)
    args.min_params_to_wrap = 10**8
    ARCH_CONFIG_REGISTRY["roberta_base"](args)
    return ARCH_MODEL_REGISTRY["roberta_base"].build_model(args, vocabulary)


@pytest.mark.parametrize("extra", ["", " --encoder-normalize-before"], ids=["post-norm", "pre-norm"])
def test_plain_twin_equals_fairseq_roberta(extra: str) -> None:
    vocabulary = Vocabulary(mask=True)
    plain = build("hat_roberta_base", TINY_ENCODER + " --no-hierarchy" + extra, vocabulary, max_positions=64).eval()
    reference = fairseq_roberta(plain, vocabulary, bool(extra)).eval()
    state = reference.state_dict()
    plain.load_state_dict(dict(state))
    assert {name for name in plain.state_dict() if not name.endswith("_fingerprint")} == {
        name for name in state if not name.endswith(".version")
    }
    source, where = masked(documents(LENGTHS))
    assert_close(plain(source, masked_tokens=where)[0], reference(source, masked_tokens=where)[0])
    assert_close(plain(source)[0][source != PAD], reference(source)[0][source != PAD])
    _, gradients = outputs_and_gradients(plain, [], lambda: plain(source, masked_tokens=where)[0])
    _, expected = outputs_and_gradients(reference, [], lambda: reference(source, masked_tokens=where)[0])
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name])
    head = {"features_only": True, "classification_head_name": "genre"}
    for model in (plain, reference):
        model.register_classification_head("genre", num_classes=3)
    plain.load_state_dict(reference.state_dict())
    assert_close(plain(source, **head)[0], reference(source, **head)[0])


def test_initial_values_are_as_large_as_fairseqs() -> None:
    vocabulary = Vocabulary(mask=True)
    plain = build("hat_roberta_base", TINY_ENCODER + " --no-hierarchy", vocabulary, max_positions=64)
    reference = fairseq_roberta(plain, vocabulary, False).state_dict()
    for name, parameter in plain.state_dict().items():
        if name in reference and parameter.is_floating_point():
            assert float(parameter.std()) == pytest.approx(float(reference[name].std()), rel=0.2), name


@VARIANTS
def test_every_parameter_gets_a_gradient_even_without_markers(variant: str) -> None:
    model = model_of(variant)
    tokens = documents(LENGTHS)
    masked_lm_loss(model, tokens.masked_fill(tokens == BOS, 7)).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not missing
    zero = [name for name, p in model.named_parameters() if not p.grad.any()]
    # A softmax over one sentence does not depend on queries and keys; a key bias never changes a softmax. What the BOS
    # tokens alone read in the last layer reaches no masked word.
    last = "layers.1.sentence_attn" if "bos" in variant else "nothing"
    assert all(".k_proj." in name or ".q_proj." in name or last in name for name in zero)


@VARIANTS
@OF
def test_fine_tuning_reaches_every_parameter(variant: str, of: str) -> None:
    model = model_of(variant)
    model.register_classification_head("genre", num_classes=3, level=of)
    model(documents(LENGTHS), features_only=True, classification_head_name="genre")[0].sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert model.encoder.lm_head is None
    with pytest.raises(ValueError, match="no masked-LM head: give classification_head_name"):
        model(documents([9]))
    with pytest.raises(ValueError, match="no classification head 'topic'; the model has: genre"):
        model(documents([9]), classification_head_name="topic")


@VARIANTS
@ARCHITECTURES
def test_alone_equals_batched_and_padding_does_not_matter(variant: str, arch: str) -> None:
    model, classifier = model_of(variant, arch).eval(), model_of(variant, arch).eval()
    classifier.register_classification_head("genre", num_classes=3)
    source, head = documents(LENGTHS), {"classification_head_name": "genre"}
    batched, scores = model(source)[0], classifier(source, **head)[0]
    wider = torch.cat([source, torch.full((len(LENGTHS), 9), PAD)], dim=1)
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in source])
    for row, length in enumerate(LENGTHS):
        alone = model(source[row : row + 1, :length])[0][0]
        assert_close(batched[row, :length], alone)
        assert_close(model(wider)[0][row, :length], alone)
        assert_close(model(left)[0][row, -length:], alone)
        assert_close(scores[row : row + 1], classifier(source[row : row + 1, :length], **head)[0])
    assert_close(classifier(left, **head)[0], scores)


def test_a_row_of_nothing_but_padding_stays_finite() -> None:
    model = model_of()
    source = torch.cat([documents([6]), torch.full((1, 6), PAD)])
    out, gradients = outputs_and_gradients(model, [], lambda: model(source)[0])
    assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients.values())


@HIERARCHIES
def test_sentences_change_the_output_and_their_markers_decide_what_they_are(queries: str) -> None:
    model = model_of(f" --sentence-queries {queries}").eval()
    source = documents([17])
    before = model(source)[0]
    with torch.no_grad():
        model.encoder.sentence_encoder.layers[0].sentence_attn.v_proj.bias.add_(torch.randn(24))
    assert not torch.allclose(model(source)[0], before, atol=1e-3)


@VARIANTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_is_close(variant: str, dtype: torch.dtype) -> None:
    model = model_of(variant).eval()
    source = documents(LENGTHS)
    real = source != PAD
    expected = model(source)[0][real]
    out, gradients = outputs_and_gradients(model.to(dtype), [], lambda: model(source)[0][real])
    assert out.dtype == dtype
    assert_close(out, expected, torch.bfloat16)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@VARIANTS
@ARCHITECTURES
def test_loaded_equals_fresh(variant: str, arch: str) -> None:
    for options in ({}, {"classification_head_name": "genre"}):
        models = [model_of(variant, arch, seed=seed).eval() for seed in (0, 1)]
        for model in models if options else ():
            model.register_classification_head("genre", num_classes=3)
        buffer = io.BytesIO()
        torch.save(models[0].state_dict(), buffer)
        buffer.seek(0)
        models[1].load_state_dict(torch.load(buffer, weights_only=True))
        source = documents(LENGTHS)
        assert torch.equal(models[0](source, **options)[0], models[1](source, **options)[0])


def test_probabilities_and_positions() -> None:
    model = model_of().eval()
    out = model(documents(LENGTHS))
    assert_close(model.get_normalized_probs(out, log_probs=False).sum(-1), torch.ones(4, 17))
    assert_close(
        model.get_normalized_probs(out, log_probs=True).exp(), model.get_normalized_probs(out, log_probs=False)
    )
    assert model.max_positions() == 64
    assert build("hat_roberta_base", TINY_ENCODER, tokens_per_sample=40).max_positions() == 40
    assert build("hat_roberta_base", TINY_ENCODER).max_positions() == 512


def test_the_output_table_is_shared_unless_untied() -> None:
    tied, untied = model_of().encoder, model_of(" --untie-weights-roberta").encoder
    assert tied.lm_head.weight is tied.sentence_encoder.embed_tokens.weight
    assert untied.lm_head.weight is not untied.sentence_encoder.embed_tokens.weight


NETWORKS = {"": "hat_roberta", " --sentence-queries bos": "hat_roberta_bos", " --no-hierarchy": "hat_roberta_plain"}


@VARIANTS
def test_golden_losses(variant: str) -> None:
    model = model_of(variant, "hat_roberta_base")
    check_losses(NETWORKS[variant], model, lambda: masked_lm_loss(model, documents(LENGTHS)))
