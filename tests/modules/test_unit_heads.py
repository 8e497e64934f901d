"""The heads of labels over units against their definitions in loops, and the regression over words beside them."""

import pytest
import torch
import units_reference
from helpers import assert_close
from torch import Tensor

from hat_fairseq.units import fit_words as fitting
from hat_fairseq.units.fit_words import fit_unit_words, fit_words
from hat_fairseq.units.heads import DocumentHead, UnitHead, mean_of_probabilities
from hat_fairseq.units.layers import UnitSizes
from hat_fairseq.units.words import BITS, FILLER, UnitWords, Words, neighbours_of, split_units, terms_of

WIDTH, CLASSES = 12, 3
LAYOUTS = [("none", 1), ("N|D", 3), ("N", 1), ("D|N", 40)]
LENGTHS = [5, 1, 50, 2]
HEADS = {DocumentHead: units_reference.label, UnitHead: units_reference.labels_of_units}


def shaken(head: torch.nn.Module) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(1)
    for parameter in head.parameters():
        parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return head.double().eval()


def drawn(lengths: list[int]) -> tuple[list[Tensor], Tensor, Tensor]:
    """The vectors of documents, the same padded, and the mask."""
    generator = torch.Generator().manual_seed(2)
    each = [torch.randn(n, WIDTH, generator=generator, dtype=torch.float64).requires_grad_() for n in lengths]
    counts = torch.tensor(lengths)
    return each, torch.nn.utils.rnn.pad_sequence(each, batch_first=True), torch.arange(max(lengths)) >= counts[:, None]


@pytest.mark.parametrize("layout, neighbours", LAYOUTS)
@pytest.mark.parametrize("kind", HEADS)
def test_logits_and_gradients_are_those_of_the_definition(kind: type, layout: str, neighbours: int) -> None:
    head = shaken(kind(WIDTH, CLASSES, UnitSizes(layout, neighbours, dim=8, ffn_dim=12, attention_heads=2)))
    vectors, padded, padding = drawn(LENGTHS)
    found = head(padded, padding, torch.zeros(len(LENGTHS), 1))
    parameters = dict(head.named_parameters())
    expected = [HEADS[kind](parameters, each, layout, 2, neighbours) for each in vectors]
    if kind is UnitHead:
        found = torch.cat([row[: len(each)] for row, each in zip(found, vectors, strict=True)])
        expected = [torch.cat(expected)]
    expected = expected[0] if kind is UnitHead else torch.stack(expected)
    assert_close(found, expected)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    wanted = [*vectors, *parameters.values()]
    own, other = (torch.autograd.grad((x * weights).sum(), wanted) for x in (found, expected))
    for first, second in zip(own, other, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-7)


def test_the_weights_of_the_gate_are_those_of_the_definition_and_sum_to_one() -> None:
    head = shaken(DocumentHead(WIDTH, CLASSES, UnitSizes("none")))
    vectors, padded, padding = drawn(LENGTHS)
    found = head.attention.weights(8 * padded, padding)
    assert_close(found.sum(dim=3), torch.ones(len(LENGTHS), 1, 1, dtype=torch.float64))
    for row, each in zip(found, vectors, strict=True):
        expected = units_reference.weights(dict(head.named_parameters()), 8 * each)
        assert_close(row[0, 0, : len(each)], expected)


DOCUMENTS = [
    [0, 5, 6, 7, 2],
    [0, 5, 6, 5, 6, 2],
    [0, 7, 8, 3, 9, 2],
    [0, 8, 9, 0, 5, 5, 2],
    [0, 10, 2],
    [0, 7, 8, 5, 2],
]
LABELS = [0, 0, 1, 1, 2, 1]


def fitted(most: int = 50) -> Words:
    words = Words(CLASSES, most)
    fit_words(words, [torch.tensor(each) for each in DOCUMENTS], LABELS)
    return words


@pytest.mark.parametrize("document", [*DOCUMENTS, [0, 5, 99, 6, 2, 1, 1], [0, 2], [0, 99, 2]])
def test_features_of_words_are_those_of_the_definition(document: list[int]) -> None:
    words = fitted()
    places, values = words.features([torch.tensor(document)])[1:]
    names = [
        str(int(each) - (1 << 2 * BITS)) if each >> 2 * BITS else f"{each >> BITS} {each & (1 << BITS) - 1}"
        for each in words.terms[places].tolist()
    ]
    expected = units_reference.tf_idf(DOCUMENTS, document) if any(each >= 4 for each in document) else {}
    assert dict(zip(names, values.tolist(), strict=True)) == pytest.approx(expected, abs=1e-6)


def test_words_that_few_documents_have_and_those_beyond_the_bound_are_left_out() -> None:
    assert int(fitted().fitted) == len(fitted().terms[fitted().terms < FILLER]) > 3
    few = fitted(3)
    assert int(few.fitted) == 3
    assert (few.terms[1:] > few.terms[:-1]).all()
    counts = {int(term): sum(int(term) in terms_of(torch.tensor(each))[0] for each in DOCUMENTS) for term in few.terms}
    assert min(counts.values()) >= 3


def test_a_training_reads_the_network_alone_and_a_prediction_the_mean_of_both() -> None:
    head = DocumentHead(WIDTH, CLASSES, UnitSizes("none", dropout=0.0)).double()
    _, padded, padding = drawn([2, 3])
    tokens = torch.tensor([[0, 5, 6, 2], [0, 7, 8, 2]])
    network = head.network(padded, padding)
    assert_close(head.eval()(padded, padding, tokens), network)  # nothing is fitted
    fit_words(head.words, [torch.tensor(each) for each in DOCUMENTS], LABELS)
    assert_close(head.train()(padded, padding, tokens), network)
    mean = (network.softmax(dim=1) + head.words(tokens).softmax(dim=1)) / 2
    found = head.eval()(padded, padding, tokens)
    assert_close(found.exp(), mean)
    assert_close(mean_of_probabilities(found, found), found)


@pytest.mark.parametrize("labels", [[1] * 6, [0, 0, 1, 1, 1, 1]])
def test_labels_without_documents_get_no_probability_of_words(labels: list[int]) -> None:
    words = Words(CLASSES, 50)
    fit_words(words, [torch.tensor(each) for each in DOCUMENTS], labels)
    assert bool(words.fitted) == (len({*labels}) > 1)
    if words.fitted:
        assert words(torch.tensor([[0, 5, 6, 2]])).softmax(dim=1)[0, 2] < 1e-4


# Documents of three units each: the label of a unit is that of its token, and 2 after a token 9.
OF_UNITS = [[0, 5, 6, 0, 9, 0, 6, 5, 2], [0, 6, 0, 5, 0, 9, 2], [0, 9, 0, 5, 0, 6, 6, 2], [0, 5, 5, 0, 9, 0, 5, 2]]
UNIT_LABELS = [[0, 1, 2], [0, 0, 1], [1, 2, -100], [0, 1, 2]]


def fitted_to_units(most: int = 50) -> UnitWords:
    words = UnitWords(CLASSES, most)
    fit_unit_words(words, [torch.tensor(each) for each in OF_UNITS * 3], UNIT_LABELS * 3)
    return words


def test_units_and_their_neighbours() -> None:
    units = split_units(torch.tensor([0, 5, 6, 0, 0, 7, 2, 1]))
    assert [each[each >= 4].tolist() for each in units] == [[5, 6], [], [7]]
    assert [each[each >= 4].tolist() for each in neighbours_of(units)] == [[], [5, 6, 7], []]
    assert [each.tolist() for each in neighbours_of(units[:1])] == [[]]


def test_words_of_units_are_one_regression_over_both_parts() -> None:
    words = fitted_to_units()
    assert int(words.own.fitted)
    assert int(words.near.fitted)
    assert not words.near.bias.any()
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(OF_UNITS[0]), torch.tensor([0, 5, 2])], True, 1)
    found = words(tokens)
    assert found.shape == (2, 3, CLASSES)
    assert not found[1, 1:].any()
    assert found[0].argmax(dim=1).tolist() == UNIT_LABELS[0]  # the third one follows 9, its own tokens are those of a 0
    places, values = words.own.features([torch.tensor([5, 6])])[1:]
    logits = words.own.weight[:, places] @ values + words.own.bias
    places, values = words.near.features([torch.tensor([9])])[1:]
    assert_close(found[0, 0], logits + words.near.weight[:, places] @ values)


def test_of_many_units_some_of_each_document_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()
    monkeypatch.setattr(
        fitting, "_fit", lambda parts, texts, labels, what: read.extend([*map(len, texts), len(labels)])
    )
    fitted_to_units()
    monkeypatch.setattr(fitting, "MOST_UNITS", 12)
    fitted_to_units()
    assert read[:3] == [33] * 3
    assert read[3] == read[4] == read[5] <= 12


@pytest.mark.parametrize("labels", [[[1] * 3] * 4, [[-100] * 3] * 4])
def test_units_of_one_label_have_no_regression(labels: list[list[int]]) -> None:
    words = UnitWords(CLASSES, 50)
    fit_unit_words(words, [torch.tensor(each) for each in OF_UNITS], labels)
    assert not words.has_weights


def test_a_head_of_units_reads_the_mean_of_both_in_evaluation() -> None:
    head = UnitHead(WIDTH, CLASSES, UnitSizes("N", dropout=0.0))
    shaken(head)
    _, padded, padding = drawn([3, 2])
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(OF_UNITS[0]), torch.tensor([0, 5, 0, 6, 2])], True, 1)
    network = head.network(padded, padding)
    assert_close(head.eval()(padded, padding, tokens), network)  # nothing is fitted
    fit_unit_words(head.words, [torch.tensor(each) for each in OF_UNITS * 3], UNIT_LABELS * 3)
    assert_close(head.train()(padded, padding, tokens), network)
    mean = (network.softmax(dim=2) + head.words(tokens).softmax(dim=2)) / 2
    assert_close(head.eval()(padded, padding, tokens).exp(), mean)
    assert UnitHead(WIDTH, CLASSES, UnitSizes("N"), words=False).words is None
    assert UnitHead(WIDTH, 1, UnitSizes("N")).words is None


def test_features_of_several_texts_are_those_of_each() -> None:
    words, texts = fitted(), [*map(torch.tensor, DOCUMENTS), torch.tensor([]).long(), torch.tensor([0, 99])]
    texts += [torch.tensor([0, 5]), torch.tensor([0, 6])]  # 5 6 is a term of a text, and not of two
    of, places, values = words.features(texts)
    for number, text in enumerate(texts):
        own = words.features([text])
        assert places[of == number].tolist() == own[1].tolist()
        assert_close(values[of == number], own[2])
