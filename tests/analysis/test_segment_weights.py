"""Weights of segments: the module's own, by their definition; the same padded, alone and among other documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import BOS, PAD, TINY_ENCODER, build, documents
from torch import Tensor

from hat_fairseq.analysis.recording import BatchRecorder, max_pooling_share, segment_attentions

SEGMENTS = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --segment-length 6 --max-segments 9 "
    "--layout S|SD|D|SD"
)
LENGTHS = [23, 30, 1, 6, 7, 11]
MODELS = {
    "by length": ("hierarchical_transformer", f"{SEGMENTS} --segment-by length"),
    "by marker": ("hierarchical_transformer", f"{SEGMENTS} --segment-by marker"),
    "padding attended": ("hierarchical_transformer", f"{SEGMENTS} --attend-segment-padding"),
    "tokens ask": ("hat_roberta_base", TINY_ENCODER),
    "bos asks": ("hat_roberta_base", f"{TINY_ENCODER} --sentence-queries bos"),
}
ALL = pytest.mark.parametrize("name", MODELS)


def model_of(name: str, flags: str = "") -> Any:
    arch, given = MODELS[name]
    model = build(arch, f"{given} {flags}")
    model.register_classification_head("topic", num_classes=3)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all weights would be nearly alike
    return model.eval()


@torch.no_grad()
def weights_of(model: Any, tokens: Tensor, layer: int | None = None) -> tuple[Tensor | None, Tensor | None]:
    with BatchRecorder(model, tokens, segment_attentions(model.core, layer)) as weights:
        model(tokens, classification_head_name="topic")
    return weights.attention, weights.share


def attentions_of(model: Any) -> dict[int, Any]:
    (shown,) = segment_attentions(model.core)
    return dict(shown.layers)


def numbers_of(model: Any, tokens: Tensor) -> list[list[int]]:
    return BatchRecorder(model, tokens, segment_attentions(model.core)).rows.tolist()


@ALL
@torch.no_grad()
def test_the_recomputed_weights_give_the_modules_output(name: str) -> None:
    """Weights times values, through out_proj; in every layer, of every row, whatever the mask."""
    model, tokens, seen = model_of(name), documents(LENGTHS), []

    def check(module: Any, inputs: tuple[Tensor, Any], output: Tensor) -> None:
        x, layout = inputs
        weights = module.weights(x, layout)
        memory = x if layout.representatives is None else layout.representatives.gather(x)
        values = module.v_proj(memory).unflatten(-1, (module.num_heads, -1))
        out = module.out_proj(torch.einsum("bhij,bjhe->bihe", weights, values).flatten(2))
        torch.testing.assert_close(out, output, atol=1e-5, rtol=1e-5)
        seen.append((module, float(weights.std())))

    attentions = attentions_of(model)
    for attention in attentions.values():
        attention.register_forward_hook(check)
    model(tokens, features_only=True)
    assert [module for module, _ in seen] == list(attentions.values()) and min(spread for _, spread in seen) > 0.05
    assert list(attentions) == ([1, 2, 3] if "hierarchical" in MODELS[name][0] else [0, 1])


@ALL
def test_alone_padded_and_among_others(name: str) -> None:
    model, tokens = model_of(name), documents(LENGTHS)
    wider = torch.cat([tokens, torch.full((len(tokens), 13), PAD)], dim=1)
    batches = [weights_of(model, batch) for batch in (tokens, wider, tokens.flip(0))]
    batches[2] = tuple(None if part is None else part.flip(0) for part in batches[2])  # type: ignore[assignment]
    for row, length in enumerate(LENGTHS):
        alone = weights_of(model, tokens[row : row + 1, :length])
        for batch in batches:
            for part, expected in zip(batch, alone, strict=True):
                if expected is None:
                    assert part is None
                    continue
                own = expected.size(1)
                torch.testing.assert_close(part[row : row + 1, :own], expected, atol=1e-5, rtol=1e-4)
                assert not part[row, own:].any() and float(part[row].sum()) == pytest.approx(1, abs=1e-5)


@torch.no_grad()
@ALL
def test_the_mean_is_over_layers_heads_and_the_segments_that_ask(name: str) -> None:
    """A single document: plain sums over what every layer's module returns when it is asked for weights."""
    model, tokens = model_of(name), documents([29])
    each = [weights_of(model, tokens, layer)[0] for layer in attentions_of(model)]
    expected, whole = torch.stack(each).mean(0), weights_of(model, tokens)[0]
    torch.testing.assert_close(whole, expected)
    one, inputs = list(attentions_of(model).values())[-1], []
    one.register_forward_hook(lambda module, args, out: inputs.append(args))
    model(tokens, features_only=True)
    weights = one.weights(*inputs[0])[0]  # H x queries x N
    asking = range(weights.size(1)) if "hierarchical" in MODELS[name][0] else [0]
    by_hand = sum(weights[head, query] for head in range(4) for query in asking) / (4 * len(asking))
    torch.testing.assert_close(each[-1][0], by_hand)


def test_share_counts_the_channels_that_a_segment_wins() -> None:
    states = torch.tensor([[[1.0, 5, 0, 2], [3, 4, 0, 1], [9, 9, 9, 9]], [[0.0, 0, 0, 0], [1, 1, -1, 1], [2, 0, 0, 0]]])
    mask = torch.tensor([[False, False, True], [False, False, False]])
    # first row: channel 0 is segment 1's, a tie goes to the first; the padded segment wins nothing
    assert max_pooling_share(states, mask).tolist() == [[0.75, 0.25, 0], [0.25, 0.5, 0.25]]


@torch.no_grad()
def test_share_is_of_the_states_that_the_head_reads() -> None:
    """Segments that win no channel can be changed without changing the label's scores; the others cannot."""
    model, tokens = model_of("by length"), documents([54])
    out, extra = model(tokens, classification_head_name="topic")
    states, head = extra["spans"], model.classification_heads["topic"]
    # 24 channels leave hardly a segment without any: one that is lower everywhere than another wins nothing
    states = torch.cat([states, states[:, :1] - 1], dim=1)
    mask = torch.zeros(1, states.size(1), dtype=torch.bool)
    share = max_pooling_share(states, mask)[0]
    assert share[-1] == 0 and (share > 0).any()
    for segment in range(states.size(1)):
        lowered = states.clone()
        lowered[:, segment] -= 5
        same = torch.allclose(head(head.pool(lowered, mask)), out)
        assert same == (share[segment] == 0)
    torch.testing.assert_close(weights_of(model, tokens)[1][0], share[:-1])


@pytest.mark.parametrize("pooling", ["attentive", "first", "mean"])
def test_other_poolings_have_no_share(pooling: str) -> None:
    attention, share = weights_of(model_of("by length", f"--pooling {pooling}"), documents([20]))
    assert attention is not None and share is None


def test_a_model_without_attention_between_segments_has_none() -> None:
    plain = f"{TINY_ENCODER} --no-hierarchy"
    for arch, flags in (("hierarchical_transformer", f"{SEGMENTS} --layout S|S"), ("hat_roberta_base", plain)):
        model = build(arch, flags).eval()
        model.register_classification_head("topic", num_classes=2)
        attention, share = weights_of(model, documents([20, 9]))
        assert attention is None and (share is None) == (arch == "hat_roberta_base")


def test_segments_of_tokens() -> None:
    tokens = torch.tensor([[BOS, 9, 9, 9, 9, 9, 9, BOS, 9, 2], [9, BOS, 9, 2, *[PAD] * 6]])
    expected = {
        "by length": [[0] * 6 + [1] * 4, [0] * 4 + [-1] * 6],
        "by marker": [[0] * 6 + [1] + [2] * 3, [0, 1, 1, 1] + [-1] * 6],
        "tokens ask": [[0] * 7 + [1] * 3, [0, 1, 1, 1] + [-1] * 6],
    }
    for name, numbers in expected.items():
        model = model_of(name)
        assert numbers_of(model, tokens) == numbers
        count = weights_of(model, tokens)[0].size(1)
        assert count == max(map(max, numbers)) + 1
    plain = build("hat_roberta_base", f"{TINY_ENCODER} --no-hierarchy")
    assert numbers_of(plain, tokens) == [[0] * 10, [0] * 10]


def test_a_wrong_layer_is_refused() -> None:
    model = model_of("by length")
    with pytest.raises(ValueError, match=r"layer 0 does not attend between segments \(the layers that do: 1, 2, 3\)"):
        segment_attentions(model.core, 0)


def test_nothing_is_left_behind() -> None:
    model, tokens = model_of("tokens ask"), documents(LENGTHS)
    with torch.no_grad():
        before = model(tokens, features_only=True)[0]
        weights_of(model, tokens)
        assert torch.equal(before, model(tokens, features_only=True)[0])
    assert not any(module._forward_hooks for module in model.modules())
