"""Classification heads on both encoders: what each reads, batch mates, and what loading makes of other heads."""

from typing import Any

import pytest
import torch
from building import BOS, EOS, PAD, Vocabulary, build, documents
from helpers import assert_close
from torch import Tensor

from hat_fairseq.data.dictionary import LABELS_FINGERPRINT
from hat_fairseq.models.adapting import fingerprint
from hat_fairseq.modules.heads import ClassificationHead, PairClassificationHead

MODELS = pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("hat_roberta_tiny", ""),
        ("ernie_sparse_tiny", "--sparse-block 2 --sparse-random 0"),
        ("hierarchical_transformer_tiny", "--segment-by marker"),
        ("hierarchical_transformer_tiny", "--pooling attentive"),
    ],
    ids=["hat_roberta", "ernie_sparse", "marker", "length"],
)
LENGTHS = [33, 17, 1, 6]


def model_of(arch: str, flags: str = "", level: str | None = "document", classes: int = 3, **options: Any) -> Any:
    model = build(arch, f"--dropout 0 --attention-dropout 0 {flags}", Vocabulary(mask=True), **options).eval()
    if level is not None:
        model.register_classification_head("topic", classes, level=level)
    return model


def scores(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens, classification_head_name="topic")[0]


@MODELS
@pytest.mark.parametrize("of", ["segment", "token"])
def test_a_head_reads_the_states_of_markers_or_of_tokens(of: str, arch: str, flags: str) -> None:
    tokens = documents(LENGTHS)
    model = model_of(arch, flags, of)
    states, head = model(tokens, features_only=True)[0], model.classification_heads["topic"]
    logits = scores(model, tokens)
    for row, length in enumerate(LENGTHS):
        real = tokens[row, :length]
        where = [i for i, token in enumerate(real.tolist()) if token == BOS or i == 0]
        chosen = states[row, :length] if of == "token" else states[row, where]
        by_hand = torch.tanh(chosen @ head.dense.weight.T + head.dense.bias) @ head.out_proj.weight.T
        assert_close(logits[row, : len(chosen)], by_hand + head.out_proj.bias)
    most = max(sum(t == BOS for t in row) for row in tokens.tolist())
    assert logits.shape == (len(LENGTHS), most if of == "segment" else tokens.size(1), 3)


@MODELS
@pytest.mark.parametrize("of", ["paragraph", "paragraphs"])
def test_a_head_reads_paragraphs_or_their_mean(of: str, arch: str, flags: str) -> None:
    """Of the last part: what stands after each of its markers."""
    tokens = documents([33, 20, 9])
    tokens[:, 4:6], tokens[:, 6] = EOS, BOS  # a question of three tokens
    model = model_of(arch, flags, of)
    states, head = model(tokens, features_only=True)[0], model.classification_heads["topic"]
    logits = scores(model, tokens)
    for row, length in enumerate((33, 20, 9)):
        markers = [i for i in range(6, length) if tokens[row, i] == BOS]
        ends = [*markers[1:], length - 1]
        vectors = torch.stack([states[row, i + 1 : j].mean(0) for i, j in zip(markers, ends, strict=True)])
        by_hand = head(vectors if of == "paragraph" else vectors.mean(0))
        assert_close(logits[row, : len(by_hand)] if of == "paragraph" else logits[row], by_hand)
    assert logits.shape[1:] == ((7, 3) if of == "paragraph" else (3,))


@MODELS
@pytest.mark.parametrize("of", ["document", "segment", "token", "paragraph", "paragraphs"])
def test_batch_mates_padding_and_markers_do_not_matter(arch: str, flags: str, of: str) -> None:
    """Every parameter takes part, also without markers."""
    model, tokens = model_of(arch, flags, of), documents(LENGTHS)
    for source in (tokens, tokens.masked_fill(tokens == BOS, 7)):
        model.zero_grad()
        scores(model, source).square().sum().backward()
        assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []
    wider = torch.cat([tokens, torch.full((len(tokens), 19), PAD)], dim=1)
    batched, padded = scores(model, tokens), scores(model, torch.cat([wider, torch.full_like(wider[:1], PAD)]))
    left = torch.stack([row.roll(int(row.eq(PAD).sum())) for row in wider])
    assert padded.isfinite().all()
    if of in ("document", "paragraphs") and "hierarchical" not in arch:  # where padding counts as a position
        assert_close(scores(model, left), batched)
    for row, length in enumerate(LENGTHS):
        alone = scores(model, tokens[row : row + 1, :length])[0]
        for other in (batched, padded):
            assert_close(other[row] if of in ("document", "paragraphs") else other[row, : len(alone)], alone)


def test_dropout_hides_what_a_head_reads() -> None:
    where = {"dropout": 1.0}, {"input_dropout": 1.0}
    for head in (*(ClassificationHead(8, 6, 3, **each) for each in where), PairClassificationHead(8, 6, 3, 1.0)):
        assert torch.equal(head(torch.randn(4, 8)), head(torch.randn(4, 8)))


@pytest.mark.parametrize("arch", ["hat_roberta_tiny", "hierarchical_transformer_tiny"])
def test_wrong_heads_are_refused(arch: str) -> None:
    with pytest.raises(ValueError, match="'topic'.*--num-classes"):
        model_of(arch, level=None).register_classification_head("topic")
    with pytest.raises(ValueError, match="'page': choose one of document, segment, token, paragraph"):
        model_of(arch, level="page")
    with pytest.raises(ValueError, match="no classification head 'genre'; the model has: topic"):
        model_of(arch)(documents([5]), classification_head_name="genre")
    with pytest.raises(ValueError, match="the model has no masked-LM head; it has classification heads"):
        model_of(arch)(documents([9]))


def labels(model: Any, *words: str) -> Any:
    """The model with labels of its classes, as the tasks note them."""
    dictionary = Vocabulary(4).source_dictionary
    for word in words:
        dictionary.add_symbol(word)
    model.classification_heads["topic"].register_buffer(LABELS_FINGERPRINT, fingerprint(dictionary))
    return model


def random_state(model: Any) -> dict[str, Tensor]:
    torch.manual_seed(8)
    return {n: torch.randn_like(t) if t.is_floating_point() else t for n, t in model.state_dict().items()}


@MODELS
def test_heads_come_and_go(arch: str, flags: str, caplog: pytest.LogCaptureFixture) -> None:
    """From pre-training to classification and back; the shared output table follows the token table."""
    caplog.set_level("INFO")
    pretrained, classifier, back = model_of(arch, flags, None), model_of(arch, flags), model_of(arch, flags, None)
    fresh = {name: tensor.clone() for name, tensor in classifier.classification_heads.state_dict().items()}
    state = random_state(pretrained)
    state["encoder.lm_head.weight"] = next(t for n, t in state.items() if n.endswith("embed_tokens.weight"))
    classifier.load_state_dict(dict(state))
    assert all(torch.equal(t, fresh[n]) for n, t in classifier.classification_heads.state_dict().items())
    assert "encoder.lm_head: not in the model; skipped 6 tensors" in caplog.text
    assert "classification_heads.topic: newly initialised" in caplog.text
    back.load_state_dict(classifier.state_dict())
    shared = {name: tensor for name, tensor in back.state_dict().items() if "lm_head" not in name}
    assert shared
    assert all(torch.equal(tensor, state[name]) for name, tensor in shared.items())
    assert torch.equal(back.encoder.lm_head.weight, state["encoder.lm_head.weight"])
    assert "classification_heads.topic: not in the model; skipped" in caplog.text


def test_a_head_with_the_same_labels_is_loaded_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    arch, name = "hat_roberta_tiny", "classification_heads.topic.out_proj.weight"
    state = random_state(labels(model_of(arch), "a", "b", "c"))
    for model in (labels(model_of(arch), "a", "b", "c"), model_of(arch)):  # fairseq's tasks note no labels
        model.heads_must_load = True
        model.load_state_dict(dict(state))
        assert torch.equal(model.state_dict()[name], state[name])
        assert not caplog.text
    for message, other in {
        "other labels in the checkpoint": labels(model_of(arch), "a", "c", "b"),
        "3 classes .* in the checkpoint, 4 classes": labels(model_of(arch, classes=4), *"abcd"),
    }.items():
        fresh = other.state_dict()[name].clone()
        caplog.clear()
        other.load_state_dict(dict(state))
        assert torch.equal(other.state_dict()[name], fresh)
        assert "skipped" in caplog.text
        other.heads_must_load = True
        with pytest.raises(ValueError, match=f"topic: {message}.*trained with"):
            other.load_state_dict(dict(state))
    with pytest.raises(ValueError, match="topic: not in the checkpoint"):
        model.load_state_dict(model_of(arch, level=None).state_dict())


@MODELS
def test_several_heads_in_one_forward_pass(arch: str, flags: str) -> None:
    """One encoder pass, a loss for each head: the sum's gradients are the sums of the losses' gradients."""
    model, source, passes = model_of(arch, flags), documents([17, 9, 2]), []
    model.register_classification_head("role", 2, level="segment")
    model.register_classification_head("word", 4, level="token")
    heads = list(model.classification_heads)
    model.encoder.register_forward_hook(lambda *unused: passes.append(1))
    logits, _ = model(source, classification_head_name=heads)
    assert len(passes) == 1
    assert list(logits) == heads
    assert [x.size(-1) for x in logits.values()] == [3, 2, 4]

    def gradients(*tensors: Tensor) -> dict[str, Tensor]:
        model.zero_grad()
        sum(x.logsumexp(-1).square().sum() for x in tensors).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    together = gradients(*logits.values())
    alone = [gradients(model(source, classification_head_name=head)[0]) for head in heads]
    assert together.keys() == {name for part in alone for name in part}
    for name, gradient in together.items():
        torch.testing.assert_close(gradient, sum(part[name] for part in alone if name in part), atol=1e-4, rtol=1e-4)


def test_probabilities() -> None:
    model = model_of("hat_roberta_tiny")
    out = model(documents(LENGTHS), classification_head_name="topic")
    probabilities = model.get_normalized_probs(out, log_probs=False)
    assert_close(probabilities.sum(-1), torch.ones(4))
    assert_close(model.get_normalized_probs(out, log_probs=True).exp(), probabilities)


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("hat_roberta_tiny", "--max-positions 20"),
        ("hierarchical_transformer_tiny", "--segment-length 5 --max-segments 4"),
        ("hierarchical_transformer_tiny", "--segment-length 5 --max-segments 4 --segment-by marker"),
    ],
)
def test_which_documents_a_model_takes(arch: str, flags: str) -> None:
    """Those that it can be run on."""
    model = model_of(arch, flags)
    for length in (1, 4, 13, 20, 21, 24):
        for every in (1, 4, 9):
            (tokens,) = documents([length], sentence=every)
            try:
                runs = bool(scores(model, tokens[None]).isfinite().all())
            except (ValueError, IndexError):
                runs = False
            assert model.core.fits(tokens) == runs, (arch, flags, length, every)
