"""`hierarchical_transformer`: its dense definition, with any layout, and what padding does."""

from typing import Any

import pytest
import references
import torch
import torch.nn.functional as F
from building import BOS, PAD, documents
from building import small_hierarchical as small
from helpers import assert_close, assert_same_run, outputs_and_gradients
from torch import Tensor

from hat_fairseq.modules import layers
from hat_fairseq.modules.heads import DOCUMENT_POOLINGS

LAYOUTS = ["S|SD|D|SD", "S|S", "D|D|S|SD|S"]
LENGTHS = [23, 30, 1, 6, 7, 11]
GROUPS = [1, 70, 1000]  # tokens of six documents: of one segment each, of one, and of all


@pytest.mark.parametrize("layout", [*LAYOUTS, "SD", "S|S|S|SD|S|S"])
@pytest.mark.parametrize(
    "flags", ["", "--segment-by marker", "--encoder-attention-layers 0", "--encoder-attention window"]
)
@pytest.mark.parametrize("tokens_of_group", GROUPS)
def test_recomputing_groups_of_segments_changes_no_number(
    layout: str, flags: str, tokens_of_group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(layers.TOKENS_OF_GROUP, "cpu", tokens_of_group)
    tokens, runs = documents(LENGTHS), []
    for flag in ("", " --checkpoint-activations"):
        model = small(layout, f"{flags} --max-segments 9{flag}").double()
        runs.append(outputs_and_gradients(model, [], lambda model=model: model.encoder(tokens).spans))
    (plain, gradients), (recomputed, others) = runs
    torch.testing.assert_close(recomputed, plain, rtol=1e-10, atol=1e-12)
    assert gradients.keys() == others.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(others[name], gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("positions", ["add", "none"])
@pytest.mark.parametrize("segment_by", ["length", "marker"])
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


@pytest.mark.parametrize(("flags", "same"), [("", True), ("--attend-segment-padding", False)])
def test_what_the_table_holds_for_padding_is_irrelevant_unless_it_is_attended_to(flags: str, same: bool) -> None:
    tokens = documents(LENGTHS)
    model = small("S|SD", flags).eval()
    before = model(tokens, masked_tokens=tokens.ne(PAD))[1]["spans"]
    absent = model(tokens)[1]["spans_padding"]
    with torch.no_grad():
        model.encoder.embed_tokens.weight[PAD] = torch.randn(24)
        model.encoder.embed_positions.weight[0] = torch.randn(24)
    after = model(tokens)[1]["spans"]
    assert torch.allclose(before[~absent], after[~absent], atol=1e-6) == same


def with_head(pooling: str, flags: str = "") -> Any:
    model = small(flags=f"--pooling {pooling} {flags}")
    model.register_classification_head("topic", num_classes=3)
    for parameter in model.classification_heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def classify(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens, classification_head_name="topic")[0]


@torch.no_grad()
@pytest.mark.parametrize("positions", ["none", "add"])
@pytest.mark.parametrize("pooling", DOCUMENT_POOLINGS)
def test_padded_segments_are_pooled_only_on_request(pooling: str, positions: str) -> None:
    """All --max-segments of them, whatever the other documents of a batch are."""
    flags = f"--segment-positions {positions} --max-segments 5 --attend-segment-padding"
    default, upstream = (with_head(pooling, f"{flags} {more}").eval() for more in ("", "--pool-padded-segments"))
    upstream.load_state_dict(default.state_dict())
    documents_of = [[12, 7], [12], [7], [30, 7], [30]]
    for tokens in map(documents, documents_of):
        wider = F.pad(tokens, (0, 30 - tokens.size(1)), value=PAD)
        assert_close(classify(default, wider), classify(default, tokens))
        head, spans = upstream.classification_heads["topic"], default.core(wider).spans
        expected = head(head.pool(spans, torch.ones(spans.shape[:2], dtype=torch.bool)))
        assert spans.size(1) == 5
        for each in (tokens, wider):
            assert_close(classify(upstream, each), expected)
        for row in range(len(tokens)):
            assert_close(
                classify(upstream, tokens[row : row + 1, : int(tokens[row].ne(PAD).sum())]), expected[row : row + 1]
            )
