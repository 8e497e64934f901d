"""Paragraphs of a row and the means of their tokens, against a loop over tokens, alone and padded on either side."""

import pytest
import torch
from helpers import assert_same_run
from torch import Tensor, nn

from hat_fairseq.modules.batch_layout import safe_padding_mask, sentence_starts, span_means
from hat_fairseq.modules.heads import paragraphs_of_tokens, pool

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
    return paragraphs_of_tokens(tokens, sentence_starts(tokens, BOS, PAD), BOS, EOS, PAD)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("left", "right"), [(0, 0), (3, 0), (0, 4)])
def test_tokens_of_the_last_part_belong_to_paragraphs(left: int, right: int, name: str) -> None:
    paragraphs, counts = numbers(batch([ROWS[name]], left, right))
    wanted = [-1] * paragraphs.size(1)
    for number, places in enumerate(by_hand(ROWS[name])):
        for place in places:
            wanted[left + place] = number
    assert paragraphs[0].tolist() == wanted
    assert counts.tolist() == [len(by_hand(ROWS[name]))]


def test_means_are_those_of_each_paragraph_alone() -> None:
    """Outputs and gradients, in one batch of all rows with a row of padding; also what stands in padding is nothing."""
    rows = [*ROWS.values(), []]
    tokens = batch(rows, right=2)
    paragraphs, counts = numbers(tokens)
    assert counts[-1] == 0
    states = torch.randn(*tokens.shape, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def fast() -> Tensor:
        means, empty = span_means(states, paragraphs, int(counts.max()))
        return torch.cat([means.flatten(1), pool("mean", means, safe_padding_mask(empty))], dim=1)

    def loop() -> Tensor:
        out = []
        for row, words in enumerate(rows):
            vectors = [states[row, places].mean(0) if places else torch.zeros(8) for places in by_hand(words)]
            filled = [vector for vector, places in zip(vectors, by_hand(words), strict=True) if places]
            vectors += [torch.zeros(8)] * (int(counts.max()) - len(vectors))
            out.append(torch.cat([*vectors, sum(filled, torch.zeros(8)) / max(1, len(filled))]))
        return torch.stack(out)

    assert_same_run(nn.Identity(), [states], fast, loop)
    spoilt = states.detach().masked_fill(paragraphs.lt(0).unsqueeze(-1), float("nan"))
    means, _ = span_means(spoilt, paragraphs, int(counts.max()))
    assert torch.equal(means, span_means(states, paragraphs, int(counts.max()))[0])


def test_halves_are_summed_in_fp32() -> None:
    long = torch.tensor([[0, *[5] * 4096, 2]])
    ones = torch.full((1, 4098, 1), 1.001, dtype=torch.bfloat16)
    mean, _ = span_means(ones, numbers(long)[0], 1)
    assert mean.dtype == torch.bfloat16
    assert float(mean) == float(ones[0, 0, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_sum_of_halves_is_not_rounded_and_does_not_overflow(dtype: torch.dtype) -> None:
    """The mean is rounded once: neither the sum of a span nor its size is a half on the way."""
    states = torch.randn(2, 3001, 5, generator=torch.Generator().manual_seed(1)).add(90).to(dtype)
    spans = torch.cat([torch.zeros(2, 3000, dtype=torch.long), torch.ones(2, 1, dtype=torch.long)], dim=1)
    means, _ = span_means(states, spans, 2)
    assert torch.equal(means[:, 0], states[:, :3000].double().mean(dim=1).to(dtype))
    assert torch.equal(means[:, 1], states[:, 3000])
