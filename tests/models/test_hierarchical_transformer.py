"""`hierarchical_transformer` as a whole: its dense definition, gradients, precision, numbers that are refused."""

from __future__ import annotations

import pytest
import references
import torch
from building import BOS, PAD, build, documents
from fairseq.models import ARCH_MODEL_REGISTRY
from golden import check_losses
from helpers import assert_close, assert_same_run, outputs_and_gradients
from hierarchical import LENGTHS, POSITIONS, SEGMENTS, SMALL, classify, small, with_head
from torch import Tensor

ARCHITECTURES = sorted(name for name in ARCH_MODEL_REGISTRY if name.startswith("hierarchical_transformer"))
LAYOUTS = ["S|SD|D|SD", "S|S", "D", "SD"]


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
    with pytest.raises(ValueError, match="no masked-LM head: give classification_head_name"):
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


def test_too_many_segments_are_refused_where_positions_are_added() -> None:
    tokens = documents([31])
    assert small(flags="--segment-positions none")(tokens)[0].isfinite().all()
    with pytest.raises(ValueError, match="a document has 6 segments of up to 6 tokens, but --max-segments is 5"):
        small()(tokens)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--segment-length 0", "--segment-length 0: it must be at least 1"),
        ("--max-segments 0", "--max-segments 0: it must be at least 1"),
        ("--layout S|X", "unknown layer 'X'"),
    ],
)
def test_wrong_numbers_are_refused(flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(flags=flags)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_is_close(dtype: torch.dtype) -> None:
    model, tokens = build("hierarchical_transformer", SMALL + "S|SD").eval(), documents(LENGTHS)
    expected = model(tokens)[0]
    out, gradients = outputs_and_gradients(model.to(dtype), [], lambda: model(tokens)[0])
    real = tokens.ne(PAD)
    assert out.dtype == dtype
    assert_close(out[real], expected[real], torch.bfloat16)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@POSITIONS
def test_golden_losses(positions: str) -> None:
    model = build("hierarchical_transformer", f"{SMALL}S|SD|D|SD --segment-positions {positions}")
    tokens = documents([23, 17])
    masked = tokens.ne(PAD)

    def loss() -> Tensor:
        return torch.nn.functional.cross_entropy(model(tokens, masked_tokens=masked)[0], tokens[masked])

    check_losses(f"hierarchical_transformer_positions_{positions}", model, loss)
