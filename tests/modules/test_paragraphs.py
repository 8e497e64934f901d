"""Paragraphs of a row and the means of their tokens, against a loop over tokens, alone and padded on either side."""

from __future__ import annotations

import pytest
import torch
from helpers import assert_close
from torch import Tensor

from hat_fairseq.modules.batch_layout import sentence_starts
from hat_fairseq.modules.heads import mean_of_paragraphs, paragraph_means, paragraph_numbers

BOS, PAD, EOS = 0, 1, 2
ROWS = {
    "question": [0, 5, 6, 2, 2, 0, 7, 8, 9, 0, 4, 0, 5, 5, 2],
    "one paragraph": [0, 5, 2, 2, 0, 7, 8, 9, 2],
    "no second part": [0, 5, 6, 0, 7, 8, 2],
    "no markers": [5, 6, 7, 2],
    "second part without a marker": [0, 5, 2, 2, 7, 8, 0, 9, 2],
    "bare markers": [0, 5, 2, 2, 0, 0, 7, 0, 2],
    "an empty second part": [0, 5, 2, 2, 0, 2],
    "one token": [2],
    "not ended": [0, 7, 0, 8, 9],
}


def by_hand(row: list[int]) -> list[list[int]]:
    """The places of the tokens of each paragraph of the last part."""
    ends = [place for place, token in enumerate(row) if token == EOS]
    begin = ends[-2] + 1 if len(ends) > 1 else 0
    paragraphs: list[list[int]] = []
    for place in range(begin, ends[-1] if ends else len(row)):
        if row[place] == BOS or place == begin:
            paragraphs.append([])
        if row[place] != BOS:
            paragraphs[-1].append(place)
    return paragraphs or [[]]


def batch(rows: list[list[int]], left: int = 0, right: int = 0) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[PAD] * left + row + [PAD] * (longest - len(row) + right) for row in rows])


def numbers(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return paragraph_numbers(tokens, sentence_starts(tokens, BOS, PAD), BOS, EOS, PAD)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("left", "right"), [(0, 0), (3, 0), (0, 4)])
def test_tokens_of_the_last_part_belong_to_paragraphs(name: str, left: int, right: int) -> None:
    row = ROWS[name]
    paragraphs, counts = numbers(batch([row], left, right))
    wanted = [-1] * paragraphs.size(1)
    for number, places in enumerate(by_hand(row)):
        for place in places:
            wanted[left + place] = number
    assert paragraphs[0].tolist() == wanted and counts.tolist() == [len(by_hand(row))]


def test_means_are_those_of_each_paragraph_alone() -> None:
    """Outputs and gradients, in one batch of all rows with a row of padding; also what stands in padding is nothing."""
    rows = [*ROWS.values(), []]
    tokens = batch(rows, right=2)
    paragraphs, counts = numbers(tokens)
    assert counts[-1] == 0
    states = torch.randn(*tokens.shape, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
    outputs, gradients = [], []
    for dense in (False, True):
        states.grad = None
        if dense:
            means = torch.zeros(len(rows), int(counts.max()), 8)
            pooled = torch.zeros(len(rows), 8)
            for row, words in enumerate(rows[:-1]):
                vectors = [states[row, places].mean(dim=0) for places in by_hand(words) if places]
                for number, places in enumerate(by_hand(words)):
                    if places:
                        means[row, number] = states[row, places].mean(dim=0)
                if vectors:
                    pooled[row] = torch.stack(vectors).mean(dim=0)
        else:
            means, empty = paragraph_means(states, paragraphs, int(counts.max()))
            pooled = mean_of_paragraphs(means, empty)
        out = torch.cat([means.flatten(1), pooled], dim=1)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
        (out * weights).sum().backward()
        outputs.append(out.detach())
        gradients.append(states.grad.clone() if states.grad is not None else None)
    assert_close(outputs[0], outputs[1])
    assert_close(gradients[0], gradients[1])
    spoilt = states.detach().masked_fill(paragraphs.lt(0).unsqueeze(-1), float("nan"))
    means, _ = paragraph_means(spoilt, paragraphs, int(counts.max()))
    assert_close(means.flatten(1), outputs[0][:, : means.flatten(1).size(1)])


def test_one_paragraph_is_the_vector_of_the_row_and_halves_are_summed_in_fp32() -> None:
    tokens = batch([ROWS["one paragraph"], ROWS["no markers"]])
    paragraphs, _ = numbers(tokens)
    states = torch.randn(*tokens.shape, 4)
    means, empty = paragraph_means(states, paragraphs, 1)
    assert torch.equal(mean_of_paragraphs(means, empty), means[:, 0])
    long = torch.tensor([[0, *[5] * 4096, 2]])
    ones = torch.full((1, 4098, 1), 1.001, dtype=torch.bfloat16)
    mean, _ = paragraph_means(ones, numbers(long)[0], 1)
    assert mean.dtype == torch.bfloat16 and float(mean) == float(ones[0, 0, 0])
