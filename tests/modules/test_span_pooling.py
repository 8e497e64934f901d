"""`--span-pooling mean`: sentences and segments are represented by the mean of their tokens, padding left out."""

from itertools import accumulate, pairwise

import pytest
import torch
from building import BOS, PAD, SMALL_HIERARCHICAL, TINY, build, documents
from helpers import assert_close

from hat_fairseq.modules.batch_layout import arrange_documents
from hat_fairseq.modules.segments import arrange_segments, slots_at_markers


@pytest.mark.parametrize("left", [False, True])
def test_means_by_hand(left: bool) -> None:
    tokens = documents([17, 8, 2])
    if left:
        tokens = torch.stack([row.roll(int(row.eq(PAD).sum())) for row in tokens])
    sentences = arrange_documents(tokens, PAD, BOS, means=True)
    segments = arrange_segments(tokens, slots_at_markers(tokens, BOS, PAD, 3), 3, PAD, means=True)
    for arranged, parts in ((sentences, (4, 4, 4, 5)), (segments, (3, 1, 3, 1, 3, 1, 3, 2))):
        layout = arranged.layout
        states = torch.randn(*arranged.tokens.shape, 5, generator=torch.Generator().manual_seed(1))
        means = layout.representatives.gather(states)
        of_tokens = layout.gather(states)
        for row, ids, spans in zip(of_tokens, tokens, means, strict=True):
            real = row[ids.ne(PAD)]
            ends = [0, *(end for end in accumulate(parts) if end < len(real)), len(real)]
            expected = [real[begin:end].mean(0) for begin, end in pairwise(ends)]
            assert_close(spans[: len(expected)], torch.stack(expected))


@pytest.mark.parametrize("pooling", ["marker", "mean"])
@pytest.mark.parametrize("arch", ["hat_transformer", "hierarchical_transformer"])
def test_which_tokens_of_a_sentence_count(arch: str, pooling: str) -> None:
    """With attention within single tokens, only the marker of a sentence reaches the others, or its mean does."""
    flags = f"--encoder-attention segments --span-pooling {pooling}"
    if arch == "hat_transformer":
        model = build(arch, f"{TINY} {flags} --segment-length 1").eval()
    else:
        model = build(arch, f"{SMALL_HIERARCHICAL} D --segment-by marker {flags}").eval()
    first = documents([12])
    second = first.clone()
    second[0, 3] = 5 + first[0, 3] % 7
    with torch.no_grad():
        spans = [model.encoder(tokens).spans for tokens in (first, second)]
    assert torch.equal(*spans) == (pooling == "marker")
