"""Means of states in context, against loops over tokens: any lengths, batches and orders of chunks."""

from collections.abc import Iterator

import pytest
import torch
from helpers import assert_close
from torch import Tensor

from hat_fairseq.modules.in_context import MARGIN, chunks_of, means_in_context

LONGEST = 3 * MARGIN  # so a margin has 3 tokens
LENGTHS = [1, 2, LONGEST - 1, LONGEST, LONGEST + 1, LONGEST + 2 * MARGIN, 10 * LONGEST + 5]


def drawn(length: int, seed: int = 0) -> list[list[int]]:
    """Pieces of 0 to 7 tokens, in all of this many."""
    generator, pieces = torch.Generator().manual_seed(seed), []
    while (missing := length - sum(map(len, pieces))) > 0:
        size = min(missing, int(torch.randint(8, (1,), generator=generator)))
        pieces.append(torch.randint(4, 30, (size,), generator=generator).tolist())
    return pieces


def of_chunk(chunk: list[int]) -> Tensor:
    """States that say the token, its place in the chunk, and the tokens up to 3 away: a small window."""
    ids = [0, *chunk, 2]
    near = [sum((j - i + 5) * ids[j] for j in range(max(0, i - 3), min(len(ids), i + 4))) for i in range(len(ids))]
    return torch.stack([torch.tensor([ids[i], i, near[i]], dtype=torch.float64) for i in range(len(ids))])


def backwards(chunks: list[list[int]]) -> Iterator[tuple[int, Tensor]]:
    return ((index, of_chunk(chunks[index])) for index in reversed(range(len(chunks))))


@pytest.mark.parametrize("length", LENGTHS)
def test_each_piece_has_the_mean_of_its_tokens(length: int) -> None:
    pieces, states = drawn(length), []
    tokens = [token for piece in pieces for token in piece]
    for begin, end, first, last in chunks_of(length, LONGEST):
        states += [of_chunk(tokens[begin:end])[1 + place - begin] for place in range(first, last)]
    (means,) = means_in_context([pieces], LONGEST, backwards)
    assert means.shape == (len(pieces), 3)
    for piece, mean in zip(pieces, means, strict=True):
        own, states = states[: len(piece)], states[len(piece) :]
        assert_close(mean, torch.stack(own).mean(dim=0) if own else torch.zeros(3, dtype=torch.float64))


def test_documents_together_are_those_alone() -> None:
    documents = [*(drawn(length, length) for length in LENGTHS), [[], []], [[]]]
    together = means_in_context(documents, LONGEST, backwards)
    for document, means in zip(documents, together, strict=True):
        assert_close(means, means_in_context([document], LONGEST, backwards)[0])
    assert means_in_context([], LONGEST, backwards) == []


@pytest.mark.parametrize("before", [1, 7, 18, 40])
def test_text_in_front_changes_no_state_that_depends_on_a_margin_of_tokens(before: int) -> None:
    """Whatever chunks a piece is in, its tokens see the same tokens on either side, and no end of a chunk."""
    pieces, front = drawn(200), [[5] * before]
    (here,), (moved,) = (means_in_context([each], LONGEST, backwards) for each in (pieces, front + pieces))
    after = next(n for n in range(len(pieces)) if sum(map(len, pieces[:n])) >= 3)  # the first tokens see the front
    assert_close(moved[1 + after :, 2], here[after:, 2])
    assert not torch.allclose(moved[1:, 1], here[:, 1])  # the places in chunks are others


def test_gradients_reach_every_state_that_is_kept() -> None:
    pieces, made = drawn(50), {}

    def states_of(chunks: list[list[int]]) -> Iterator[tuple[int, Tensor]]:
        for index, state in backwards(chunks):
            made[index] = state.requires_grad_()
            yield index, state

    means_in_context([pieces], LONGEST, states_of)[0].sum().backward()
    sizes = [len(piece) for piece in pieces for _ in piece]
    for index, (begin, end, first, last) in enumerate(chunks_of(50, LONGEST)):
        expected = torch.zeros(end - begin + 2, 3, dtype=torch.float64)
        for place in range(first, last):
            expected[1 + place - begin] = 1 / sizes[place]
        assert_close(made[index].grad, expected)
