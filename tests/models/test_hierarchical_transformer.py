"""`hierarchical_transformer` as a whole: sizes, its dense definition, fairseq's RoBERTa, padding, heads, quirks."""

from __future__ import annotations

import io
from argparse import Namespace
from typing import Any

import pytest
import references
import torch
from building import BOS, PAD, Vocabulary, build, documents, released_roberta
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from helpers import assert_close, assert_same_run, outputs_and_gradients
from torch import Tensor

ARCHITECTURES = sorted(name for name in ARCH_MODEL_REGISTRY if name.startswith("hierarchical_transformer"))
SMALL = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --dropout 0 --attention-dropout 0 "
    "--pooler-dropout 0 --segment-length 6 --max-segments 5 --layout "
)
LAYOUTS = ["S|SD|D|SD", "S|S", "D", "SD"]
LENGTHS = [23, 30, 1, 6, 7, 11]
POSITIONS = pytest.mark.parametrize("positions", ["add", "none"])
SEGMENTS = pytest.mark.parametrize("segment_by", ["length", "marker"])


def small(layout: str = "S|SD", flags: str = "", seed: int = 0, arch: str = "hierarchical_transformer") -> Any:
    model = build(arch, f"{SMALL}{layout} {flags}", seed=seed)
    for name, parameter in model.named_parameters():  # at 1, 0 and 0.02 too much would look alike
        if "layer_norm" in name or "layernorm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
        elif parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def with_head(pooling: str, flags: str = "") -> Any:
    model = small(flags=f"--pooling {pooling} {flags}")
    model.register_classification_head("topic", num_classes=3)
    for parameter in model.classification_heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def classify(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens, classification_head_name="topic")[0]


def count(arch: str, flags: str = "", size: int = 50265) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in build(arch, flags, Vocabulary(size, mask=True)).parameters())


def test_parameter_counts_are_those_of_the_released_model() -> None:
    base = count("hierarchical_transformer_base_4096")
    assert base == 152_779_353
    assert base - count("hierarchical_transformer_base_4096", "--segment-positions none") == 33 * 768
    # another layout of 16 blocks, no other number
    assert count("hierarchical_transformer_base_4096", "--layout S|S|S|S|S|S|S|S|S|S|S|SD|D|D|D") == base
    block = 4 * (256 * 256 + 256) + 2 * 256 * 1024 + 1024 + 256 + 4 * 256
    tables = (30_522 + 130 + 1 + 9) * 256
    head = 256 * 256 + 256 + 2 * 256 + 30_522
    assert count("hierarchical_transformer_mini_1024", size=30_522) == 12 * block + tables + 2 * 256 + head


@pytest.mark.parametrize("layout", LAYOUTS)
@POSITIONS
@SEGMENTS
def test_a_batch_is_each_document_alone_and_dense(layout: str, positions: str, segment_by: str) -> None:
    """Lengths below, at and above a segment's, and the longest that fits; outputs and every gradient."""
    flags = f"--segment-positions {positions} --segment-by {segment_by} --max-segments 9"
    model, tokens = small(layout, flags).double(), documents(LENGTHS)
    lengths = tokens.ne(PAD).sum(1).tolist()

    def dense() -> Tensor:
        rows = []
        for row, length in zip(tokens, lengths, strict=True):
            ids = row[:length]
            parts = list(ids.split(6))
            if segment_by == "marker":
                where = references.segments_at_markers(ids.tolist(), BOS, PAD, 6)
                parts = [ids[segment] for segment in where]
            rows += references.hierarchical_transformer(model.encoder, parts)
        features = torch.cat(rows)
        head = model.encoder.lm_head
        return head.layer_norm(references.gelu(head.dense(features))) @ head.weight.T + head.bias

    assert_same_run(model, [], lambda: model(tokens, masked_tokens=tokens.ne(PAD))[0], dense)


def roberta(layers: int = 3, positions: int = 64) -> Any:
    sizes = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_attention_heads": 4}
    args = Namespace(arch="roberta", max_positions=positions, dropout=0.0, encoder_layers=layers, **sizes)
    ARCH_CONFIG_REGISTRY["roberta"](args)
    torch.manual_seed(9)
    return ARCH_MODEL_REGISTRY["roberta"].build_model(args, Vocabulary()).eval()


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 5, 64])
def test_started_from_roberta_one_segment_without_cross_attention_is_roberta(length: int) -> None:
    theirs, tokens = roberta(), documents([length])
    flags = SMALL.replace("--segment-length 6", "--segment-length 64") + "S|S|S"
    model = build("hierarchical_transformer", flags).eval()
    model.load_state_dict(theirs.state_dict())  # through the hook that a --restore-file takes
    assert_close(model(tokens)[0], theirs(tokens)[0])
    assert_close(model(tokens, features_only=True)[0], theirs(tokens, features_only=True)[0])
    masked = torch.rand(tokens.shape) < 0.5
    assert_close(model(tokens, masked_tokens=masked)[0], theirs(tokens, masked_tokens=masked)[0])


@pytest.mark.parametrize("released", [False, True], ids=["today", "2019"])
def test_start_from_roberta_takes_each_layer_twice_and_crops_positions(released: bool) -> None:
    theirs = roberta().state_dict()
    model = small("S|SD|D")
    model.load_state_dict(released_roberta(theirs) if released else dict(theirs))
    state, prefix = model.state_dict(), "encoder.sentence_encoder."
    for name, tensor in state.items():
        if ".layers." in name:
            source = name.replace("encoder.", prefix, 1).replace("segment_wise.", "").replace("cross_segment.", "")
            assert torch.equal(tensor, theirs[source]), name
    positions = theirs[prefix + "embed_positions.weight"]
    assert torch.equal(state["encoder.embed_positions.weight"], positions[:8])
    assert torch.equal(state["encoder.segment_positions.weight"], positions[1:7])
    assert torch.equal(state["encoder.lm_head.bias"], theirs["encoder.lm_head.bias"])
    assert not state["encoder.embed_token_type.weight"].any()
    with pytest.raises(ValueError, match="RoBERTa has no layers.3."):
        small("S|S|S|S").load_state_dict(dict(theirs))
    with pytest.raises(ValueError, match="needs 8 positions of RoBERTa, which has 6"):
        small("S|S").load_state_dict(roberta(positions=4).state_dict())


@SEGMENTS
@POSITIONS
def test_batch_mates_and_padding_do_not_matter(segment_by: str, positions: str) -> None:
    flags = f"--segment-by {segment_by} --segment-positions {positions} --max-segments 9"
    models = [small("S|SD|D", flags), with_head("max", flags), with_head("attentive", flags), with_head("mean", flags)]
    tokens = documents(LENGTHS)
    wider = torch.cat([tokens, torch.full((len(tokens), 13), PAD)], dim=1)
    for model, run in zip(models, [lambda m, t: m(t)[0], *[classify] * 3], strict=True):
        model.eval()
        batched, padded = run(model, tokens), run(model, wider)
        assert padded.isfinite().all()
        for row, length in enumerate(LENGTHS):
            alone = run(model, tokens[row : row + 1, :length])
            for other in (batched, padded):
                part = other[row : row + 1] if alone.dim() == 2 else other[row : row + 1, :length]
                assert_close(part, alone)


def test_what_the_table_holds_for_padding_is_irrelevant_unless_it_is_attended_to() -> None:
    tokens = documents(LENGTHS)
    for flags, same in (("", True), ("--attend-segment-padding", False)):
        model = small("S|SD", flags).eval()
        before = model(tokens, masked_tokens=tokens.ne(PAD))[1]["segments"]
        absent = model(tokens)[1]["segments_padding"]
        with torch.no_grad():
            model.encoder.embed_tokens.weight[PAD] = torch.randn(24)
            model.encoder.embed_positions.weight[0] = torch.randn(24)
        after = model(tokens)[1]["segments"]
        assert torch.allclose(before[~absent], after[~absent], atol=1e-6) == same


def test_a_row_of_nothing_but_padding_is_finite_and_disturbs_nothing() -> None:
    tokens = torch.cat([documents([9, 4]), torch.full((1, 9), PAD)])
    for pooling in ("max", "attentive", "first", "last", "mean"):
        model = with_head(pooling)
        out, gradients = outputs_and_gradients(model, [], lambda m=model: classify(m, tokens))
        assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients.values())
        assert_close(out[:2], classify(model, tokens[:2]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@POSITIONS
def test_every_parameter_gets_a_gradient(arch: str, positions: str) -> None:
    model = small("S|SD|D|SD", f"--segment-positions {positions}", arch=arch)
    tokens = documents([29, 14])
    model(tokens, masked_tokens=tokens.ne(PAD))[0].square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []
    zero = [name for name, p in model.named_parameters() if not p.grad.any()]
    assert zero == []
    table = model.encoder.segment_positions
    assert table is None or bool(table.weight.grad.any(dim=1)[1:].all())  # the first segment's row as well


@pytest.mark.parametrize("pooling", ["max", "attentive", "first", "last", "mean"])
def test_every_parameter_gets_a_gradient_from_a_classification_head(pooling: str) -> None:
    model = with_head(pooling)
    classify(model, documents([29, 14])).square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert model.encoder.lm_head is None
    with pytest.raises(ValueError, match="replaced by a classification head"):
        model(documents([9]))


def test_positions_left_out_equal_a_table_of_zeros_and_matter_otherwise() -> None:
    with_table, without = small("S|SD|D"), small("S|SD|D", "--segment-positions none")
    state = {k: v for k, v in with_table.state_dict().items() if "segment_positions" not in k}
    without.load_state_dict(state)
    tokens = documents(LENGTHS)
    expected = without(tokens)[0]
    assert not torch.allclose(with_table(tokens)[0], expected, atol=1e-2)
    with torch.no_grad():
        with_table.encoder.segment_positions.weight.zero_()
    assert_close(with_table(tokens)[0], expected)


def test_padded_segments_are_pooled_only_on_request() -> None:
    tokens = documents([12, 7])
    wider = torch.cat([tokens, torch.full((2, 12), PAD)], dim=1)
    default, upstream = with_head("max"), with_head("max", "--pool-padded-segments")
    upstream.load_state_dict(default.state_dict())
    assert_close(classify(default, wider), classify(default, tokens))
    assert_close(classify(upstream, tokens), classify(default, tokens))
    assert not torch.allclose(classify(upstream, wider), classify(default, wider), atol=1e-3)


def test_too_many_segments_are_refused_where_positions_are_added() -> None:
    tokens = documents([31])
    assert small(flags="--segment-positions none")(tokens)[0].isfinite().all()
    with pytest.raises(ValueError, match="a document of 6 segments of up to 6 tokens, but --max-segments is 5"):
        small()(tokens)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--segment-length 0", "--segment-length 0: at least 1"),
        ("--max-segments 0", "--max-segments 0: at least 1"),
        ("--layout S|X", "unknown layer 'X'"),
    ],
)
def test_wrong_numbers_are_refused(flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(flags=flags)


def test_a_head_needs_a_number_of_classes() -> None:
    with pytest.raises(ValueError, match="'topic'.*--num-classes"):
        small().register_classification_head("topic")


def test_checkpointed_activations_change_no_number() -> None:
    flags, tokens = "--dropout 0.1 --attention-dropout 0.1 --layout S|SD|D", documents(LENGTHS)
    runs = []
    for extra in ("", " --checkpoint-activations"):
        model = small(flags=flags + extra).train()
        torch.manual_seed(5)
        runs.append(outputs_and_gradients(model, [], lambda m=model: m(tokens, masked_tokens=tokens.ne(PAD))[0]))
    (plain, plain_gradients), (out, gradients) = runs
    assert torch.equal(plain, out) and gradients.keys() == plain_gradients.keys()
    assert [name for name in gradients if not torch.equal(gradients[name], plain_gradients[name])] == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_is_close(dtype: torch.dtype) -> None:
    model, tokens = build("hierarchical_transformer", SMALL + "S|SD").eval(), documents(LENGTHS)
    expected = model(tokens)[0]
    out, gradients = outputs_and_gradients(model.to(dtype), [], lambda: model(tokens)[0])
    real = tokens.ne(PAD)
    assert out.dtype == dtype
    assert_close(out[real], expected[real], torch.bfloat16)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


def reloaded(model: Any) -> dict[str, Tensor]:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def test_loaded_equals_fresh_and_heads_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    tokens = documents(LENGTHS)
    pretrained, other = small(), small(seed=1)
    other.load_state_dict(reloaded(pretrained))
    assert torch.equal(other.eval()(tokens)[0], pretrained.eval()(tokens)[0]) and "newly" not in caplog.text

    classifier = with_head("attentive").eval()
    head = {name: tensor.clone() for name, tensor in classifier.classification_heads.state_dict().items()}
    classifier.load_state_dict(reloaded(pretrained))
    assert_close(classifier(tokens, features_only=True)[0], pretrained(tokens, features_only=True)[0])
    assert all(torch.equal(t, head[name]) for name, t in classifier.classification_heads.state_dict().items())
    assert "no such head: 6 tensors" in caplog.text and "newly initialised: 7 tensors" in caplog.text

    back = small(seed=2).eval()
    back.load_state_dict(reloaded(classifier))
    assert_close(back(tokens, features_only=True)[0], pretrained(tokens, features_only=True)[0])
    assert back.encoder.lm_head.weight is back.encoder.embed_tokens.weight
    broken = reloaded(pretrained)
    del broken["encoder.layers.0.segment_wise.fc1.bias"]
    with pytest.raises(RuntimeError, match="segment_wise.fc1.bias"):
        small().load_state_dict(broken)


def test_another_dictionary_of_the_same_size_is_refused() -> None:
    vocabulary = Vocabulary()
    symbols = vocabulary.source_dictionary.symbols
    symbols[10], symbols[11] = symbols[11], symbols[10]
    other = build("hierarchical_transformer", SMALL + "S|SD", vocabulary)
    with pytest.raises(ValueError, match="another dictionary"):
        other.load_state_dict(reloaded(small()))


# Losses of ten Adam steps in fp32 on a CPU; a change here is a change of the model or of its initialisation.
GOLDEN = {"add": [4.1156, 3.0781, 2.0103], "none": [4.0732, 3.0422, 1.9076]}


@POSITIONS
def test_golden_losses(positions: str) -> None:
    model = build("hierarchical_transformer", f"{SMALL}S|SD|D|SD --segment-positions {positions}")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    tokens, losses = documents([23, 17]), []
    masked = tokens.ne(PAD)
    for _ in range(10):
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(model(tokens, masked_tokens=masked)[0], tokens[masked])
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert [losses[0], losses[4], losses[9]] == pytest.approx(GOLDEN[positions], abs=2e-3)
