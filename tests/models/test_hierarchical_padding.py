"""`hierarchical_transformer` and padding: batch mates, rows and segments of nothing else."""

from __future__ import annotations

import torch
from building import PAD, documents
from helpers import assert_close, outputs_and_gradients
from hierarchical import LENGTHS, POSITIONS, SEGMENTS, classify, small, with_head


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
        before = model(tokens, masked_tokens=tokens.ne(PAD))[1]["spans"]
        absent = model(tokens)[1]["spans_padding"]
        with torch.no_grad():
            model.encoder.embed_tokens.weight[PAD] = torch.randn(24)
            model.encoder.embed_positions.weight[0] = torch.randn(24)
        after = model(tokens)[1]["spans"]
        assert torch.allclose(before[~absent], after[~absent], atol=1e-6) == same


def test_a_row_of_nothing_but_padding_is_finite_and_disturbs_nothing() -> None:
    tokens = torch.cat([documents([9, 4]), torch.full((1, 9), PAD)])
    for pooling in ("max", "attentive", "first", "last", "mean"):
        model = with_head(pooling)
        out, gradients = outputs_and_gradients(model, [], lambda m=model: classify(m, tokens))
        assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients.values())
        assert_close(out[:2], classify(model, tokens[:2]))


def test_padded_segments_are_pooled_only_on_request() -> None:
    tokens = documents([12, 7])
    wider = torch.cat([tokens, torch.full((2, 12), PAD)], dim=1)
    default, upstream = with_head("max"), with_head("max", "--pool-padded-segments")
    upstream.load_state_dict(default.state_dict())
    assert_close(classify(default, wider), classify(default, tokens))
    assert_close(classify(upstream, tokens), classify(default, tokens))
    assert not torch.allclose(classify(upstream, wider), classify(default, wider), atol=1e-3)
