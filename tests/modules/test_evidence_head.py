"""The head of evidence against its definition in loops: scores and gradients, at awkward sizes."""

import math

import evidence_reference
import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close
from torch import Tensor

from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.in_context import chunks_of, nearby_means
from hat_fairseq.units.evidence_head import EvidenceHead, UnitsAndQuestions
from hat_fairseq.units.features import ROWS, best_nearby, smoothed
from hat_fairseq.units.layers import UnitSizes

WORDS, WIDTH = 30, 12
LAYOUTS = [("N|D", 3), ("N", 1), ("D|N|N", 40), ("D", 12)]


def head_of(layout: str, neighbours: int) -> EvidenceHead:
    head = (
        EvidenceHead(WIDTH, WORDS, UnitSizes(layout, neighbours, dim=8, ffn_dim=12, attention_heads=2)).double().eval()
    )
    generator = torch.Generator().manual_seed(1)
    for parameter in head.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    head.count_questions([torch.tensor([5, 6, 5]), torch.tensor([6, 7])])
    return head


def drawn(asked: list[int], sizes: list[int]) -> UnitsAndQuestions:
    """A document with questions and units of so many tokens."""
    generator = torch.Generator().manual_seed(2)

    def vectors(count: int) -> Tensor:
        return torch.randn(count, WIDTH, generator=generator, dtype=torch.float64)

    questions = [torch.randint(4, WORDS, (size,), generator=generator) for size in asked]
    tokens = torch.randint(4, WORDS, (sum(sizes),), generator=generator)
    unit, question = F.normalize(vectors(len(sizes)), dim=1), F.normalize(vectors(len(asked)), dim=1)
    return UnitsAndQuestions(
        questions, tokens, torch.tensor(sizes), vectors(WORDS), question, unit, vectors(len(sizes))
    )


DOCUMENTS = {
    "usual": ([3, 1], [5, 40, 1, 90, 7, 300, 2, 66, 20]),
    "one unit": ([2], [4]),
    "two units": ([1, 1, 5], [1, 1]),
    "an empty unit": ([3], [5, 0, 7]),
    "long units": ([4], [700, 650, 900]),
}


@pytest.mark.parametrize("layout, neighbours", LAYOUTS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_scores_and_gradients_are_those_of_the_definition(name: str, layout: str, neighbours: int) -> None:
    head, document = head_of(layout, neighbours), drawn(*DOCUMENTS[name])
    inputs = [document.embeddings, document.question_vectors, document.unit_vectors, document.contexts]
    for x in inputs:
        x.requires_grad_()
    units = [part.tolist() for part in document.tokens.split(document.sizes.tolist())]
    questions = [question.tolist() for question in document.questions]
    parameters = dict(head.named_parameters())
    expected = evidence_reference.scores(
        parameters | dict(head.named_buffers()), layout, 2, neighbours, questions, units, *inputs
    )
    found = head(document)
    assert_close(found, expected)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    wanted = [*inputs, *parameters.values()]
    for own, other in zip(
        torch.autograd.grad((found * weights).sum(), wanted, allow_unused=True),
        torch.autograd.grad((expected * weights).sum(), wanted, allow_unused=True),
        strict=True,
    ):
        assert (own is None) == (other is None)
        if own is not None:
            torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-7)


def test_a_window_that_moves_with_the_document_sees_the_same() -> None:
    layer, x = head_of("N", 3).layers[0], torch.randn(1, 18, 8, dtype=torch.float64)
    moved = torch.cat([torch.randn(1, 12, 8, dtype=torch.float64), x], dim=1)
    assert_close(layer(moved, BatchLayout())[:, 15:], layer(x, BatchLayout())[:, 3:])


@pytest.mark.parametrize("tokens, longest", [(0, 9), (9, 9), (10, 9), (100, 16), (1000, 510), (511, 510)])
def test_chunks_keep_each_token_once_with_a_margin_on_either_side(tokens: int, longest: int) -> None:
    chunks = list(chunks_of(tokens, longest))
    assert [n for each in chunks for n in range(each.first, each.last)] == list(range(tokens))
    for each in chunks:
        assert each.end - each.begin <= longest
        assert each.begin == 0 or each.first - each.begin == longest // 8
        assert each.end == tokens or each.end - each.last == longest // 8


@pytest.mark.parametrize("width", [0.5, 3, 7.5, 1000])
def test_means_of_windows_are_those_of_tokens(width: float) -> None:
    sizes = [4, 0, 1, 9, 2, 2]
    means = torch.randn(6, 3, dtype=torch.float64)
    units = [[7] * size for size in sizes]
    expected = [evidence_reference.window_mean(means, units, number, width) for number in range(6)]
    assert_close(nearby_means(means, torch.tensor(sizes), width), torch.stack(expected))


def test_many_units_are_computed_in_parts() -> None:
    middles, x = torch.arange(2 * ROWS + 5).double() * 3, torch.randn(2, 2 * ROWS + 5, dtype=torch.float64)
    for number in (0, ROWS - 1, ROWS, 2 * ROWS + 4):
        weights = torch.exp(-0.5 * ((middles[number] - middles) / 20).square())
        assert_close(smoothed(x, middles, 20)[:, number], x @ weights / weights.sum())
        near = (middles - middles[number]).abs() <= 20
        assert_close(best_nearby(x, middles, 20)[:, number], x[:, near].amax(dim=1))


def test_tokens_of_many_questions_weigh_little() -> None:
    head = head_of("N", 1)
    head.count_questions([torch.tensor([5, 6, 5]), torch.tensor([6, 7]), torch.tensor([6])])
    assert head.rarity[[4, 5, 6]].tolist() == pytest.approx(
        [1.0, (math.log(4 / 1.5) / math.log(4 / 0.5)) ** 2, (math.log(4 / 3.5) / math.log(4 / 0.5)) ** 2]
    )
    head.reset_parameters()
    assert head.rarity.eq(1).all()
    assert head.thresholds.eq(-1).all()
