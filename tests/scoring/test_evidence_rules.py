"""Rules for evidence against loops over a small drawn document, and what is chosen on which documents."""

import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from vector_rules import MEANS_WITHIN, RULES, best_nearby, chunk_numbers, from_passages, passages_of

from hat_fairseq.data.language import words_of
from hat_fairseq.scoring.baselines import baselines
from hat_fairseq.units.baselines import ALL, WEIGHTED, Choice, Reference, best_threshold, choose, predict, references_of
from hat_fairseq.units.evidence import Evidence
from hat_fairseq.units.rules import WordScores, as_probabilities, middles_of, smoothed, standardised, weights_of
from hat_fairseq.units.scores import average_precision, f1

TEXT = "remote control button yellow rubber price meeting monday Größe цена 価格 what do they say about the"
VOCABULARY = TEXT.split()
ASKED = ["what do they say about the price", "what is yellow", "what about the button", "цена"]
Array = np.ndarray


def draw_text(draw: random.Random, most: int) -> str:
    return " ".join(draw.choices(VOCABULARY, k=draw.randint(1, most)))


def draw_document(seed: int, units: int = 40) -> Reference:
    """With cosines that are random numbers, as no rule looks into vectors."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    texts = [draw_text(draw, 9) for _ in range(units)]
    questions = [draw_text(draw, 5) for _ in range(3)]
    sizes = numbers.integers(1, 90, units)
    shape = (3, units)
    cosines: Any = SimpleNamespace(
        sizes=sizes,
        alone=numbers.uniform(-1, 1, shape),
        chunks=numbers.uniform(-1, 1, (3, chunk_numbers(sizes)[-1] + 1))[:, chunk_numbers(sizes)],
        nearby={width: numbers.uniform(-1, 1, shape) for width in MEANS_WITHIN},
        passages=numbers.uniform(-1, 1, (3, len(passages_of(int(sizes.sum()))))),
    )
    record = Evidence(str(seed), questions=tuple(questions), sentences=tuple(texts))
    return Reference(record, [], texts, number=seed, weights=weights_of(ASKED), cosines=cosines)


def middles(sizes: Any) -> list[float]:
    return [sum(sizes[:n]) + sizes[n] / 2 for n in range(len(sizes))]


def loop_bm25(document: Reference, weighted: bool) -> Array:
    said = [words_of(text) for text in document.texts]
    mean = sum(map(len, said)) / len(said)
    scores = np.zeros((len(document.record.questions), len(said)))
    for q, question in enumerate(document.record.questions):
        for word in set(words_of(question)):
            having = sum(word in unit for unit in said)
            idf = math.log(1 + (len(said) - having + 0.5) / (having + 0.5))
            asking = sum(word in words_of(other) for other in ASKED)
            weight = math.log((len(ASKED) + 1) / (asking + 0.5)) ** 2 if weighted else 1
            for n, unit in enumerate(said):
                count = unit.count(word)
                scores[q, n] += weight * idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(unit) / mean))
    return scores


def loop_smooth(scores: Array, places: list[float], width: float) -> Array:
    if width == 0:
        return scores
    result = np.zeros_like(scores)
    for n, place in enumerate(places):
        near = [math.exp(-((place - other) ** 2) / (2 * width**2)) for other in places]
        for q in range(len(scores)):
            result[q, n] = sum(k * s for k, s in zip(near, scores[q], strict=True)) / sum(near)
    return result


def loop_z(scores: Array) -> Array:
    return np.array([[(s - np.mean(row)) / np.std(row) if np.std(row) else 0 for s in row] for row in scores])


def loop_passages(document: Reference, passages: str) -> Array:
    own = document.cosines
    rows = []
    for row in own.passages:
        columns = []
        for place in middles(own.sizes):
            inside = [score for p, score in enumerate(row) if 128 * p <= place <= min(sum(own.sizes), 128 * p + 256)]
            columns.append(max(inside) if passages == "best" else sum(inside) / len(inside))
        rows.append(columns)
    return np.array(rows)


def loop_nearby(document: Reference, width: int) -> Array:
    own = document.cosines
    places = middles(own.sizes)
    return np.array(
        [
            [max(s for s, other in zip(row, places, strict=True) if abs(other - place) <= width) for place in places]
            for row in own.alone
        ]
    )


def loop_words(document: Reference, words: str, within: int) -> Array:
    sizes = [len(words_of(text)) for text in document.texts]
    return loop_z(loop_smooth(loop_bm25(document, words == WEIGHTED), middles(sizes), within))


def loop_sum(document: Reference, passages: str, words: str, within: int, words_weight: float) -> Array:
    return loop_z(loop_passages(document, passages)) + words_weight * loop_words(document, words, within)


def loop_hybrid(document: Reference, best_within: int, best_weight: float, **settings: Any) -> Array:
    return loop_sum(document, **settings) + best_weight * loop_z(loop_nearby(document, best_within))


def loop_chunk(document: Reference) -> tuple[Array, Array]:
    """The best cosine of a unit's chunk, and the number of the chunk."""
    own, numbers, before = document.cosines, [], 0
    for size in own.sizes:
        before += size
        numbers.append(max(0, before - 1) // 512)
    best = [[max(s for s, m in zip(row, numbers, strict=True) if m == n) for n in numbers] for row in own.alone]
    return np.array(best), np.array(numbers)


LOOPS: dict[str, Any] = {
    "random": lambda document: np.random.default_rng([0, document.number]).random((3, len(document.texts))),
    "alone": lambda document: document.cosines.alone,
    "best_of_chunk": lambda document: loop_chunk(document)[0] + document.cosines.alone / 1000,
    "chunk": lambda document: document.cosines.chunks + document.cosines.alone / 1000,
    "late": lambda document, nearby: document.cosines.nearby[nearby],
    "late_bm25": lambda document, nearby, words_weight, **settings: (
        loop_z(document.cosines.nearby[nearby]) + words_weight * loop_words(document, **settings)
    ),
    "bm25": loop_words,
    "passages": loop_passages,
    "passages_bm25": loop_sum,
    "hybrid": loop_hybrid,
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(2))
def test_scores_are_those_of_loops(seed: int, name: str) -> None:
    """For every choice of the settings."""
    document = draw_document(seed)
    choices = list(RULES[name].choices(weighted=True))
    for settings in random.Random(seed).sample(choices, min(6, len(choices))):
        expected = LOOPS[name](draw_document(seed) if "best_within" in settings else document, **settings)
        assert np.abs(RULES[name].scores(document, **settings) - expected).max() < 1e-9, settings


def test_words_of_questions_are_weighted_by_other_questions_only() -> None:
    weight = weights_of(ASKED)
    assert weight("price") == weight("yellow") > weight("the") > weight("what") > 0
    assert weight("unheard") > weight("price")
    choices = [each["words"] for each in RULES["bm25"].choices(weighted=False)]
    assert set(choices) == {ALL}
    assert len(choices) == 6


def test_units_without_words_and_words_without_units_have_no_score() -> None:
    words = WordScores(["price", "?"], ["...", "price price", "the remote", "!"])
    scores = words.bm25(None)
    assert scores[0, 1] > 0
    assert not scores[1].any()
    assert not scores[0, [0, 2, 3]].any()
    assert not standardised(scores)[1].any()
    assert np.isfinite(smoothed(scores, words.middles, 48)).all()
    assert not WordScores(["?"], ["..."]).bm25(None).any()


@pytest.mark.parametrize("rule", [smoothed, best_nearby])
@pytest.mark.parametrize("width", [48, 256])
def test_units_more_at_the_beginning_move_the_windows_and_do_not_change_them(rule: Any, width: int) -> None:
    """Scores of units far from the beginning stay what they were; those near it see a great score before them."""
    numbers = np.random.default_rng(width)
    sizes, scores = numbers.integers(1, 60, 150), numbers.normal(size=(2, 150))
    moved, longer = np.concatenate([np.arange(1, 13), sizes]), np.concatenate([np.full((2, 12), 9.0), scores], axis=1)
    far = middles_of(sizes) > 8 * width
    own, other = rule(scores, middles_of(sizes), width), rule(longer, middles_of(moved), width)[:, 12:]
    assert far.any()
    assert np.abs(own - other)[:, far].max() < 1e-9
    assert np.abs(own - other).max() > 1


def test_passages_move_with_what_fills_half_a_passage() -> None:
    numbers = np.random.default_rng(5)
    sizes = numbers.integers(1, 60, 150)
    moved = np.concatenate([np.full(12, 32), sizes])  # 384 tokens, three halves
    cosines = numbers.normal(size=(2, len(passages_of(int(sizes.sum())))))
    longer = np.concatenate([numbers.normal(size=(2, 3)), cosines], axis=1)
    own, other = from_passages(cosines, sizes, False), from_passages(longer, moved, False)[:, 12:]
    far = middles_of(sizes) > 128
    assert np.allclose(own[:, far], other[:, far])
    assert not np.allclose(own, other)


@pytest.mark.parametrize("tokens", [0, 1, 255, 256, 257, 384, 385, 5000])
def test_passages_cover_a_document_and_overlap_by_half(tokens: int) -> None:
    passages = passages_of(tokens)
    assert passages[0][0] == 0
    assert passages[-1][1] == tokens
    assert all(end - begin == 256 for begin, end in passages[:-1])
    assert all(second[0] - first[0] == 128 for first, second in zip(passages, passages[1:], strict=False))
    assert len(passages) == 1 or passages[-2][1] < tokens


def test_probabilities_keep_the_order_of_far_scores() -> None:
    for scores in (np.linspace(-40, 40, 801), np.linspace(-1, 1, 801)):
        probabilities = as_probabilities(scores)
        assert probabilities.min() > 0
        assert probabilities.max() < 1
        assert (np.diff(probabilities) > 0).all()
    assert as_probabilities(np.zeros(1)) == 0.5


def drawn_gold(seed: int, documents: list[Reference]) -> list[Array]:
    draw = np.random.default_rng(seed)
    return [draw.random((3, len(each.texts))) < 0.2 for each in documents]


@pytest.mark.parametrize("name", ["bm25", "late", "passages_bm25"])
def test_the_best_settings_of_the_validation_documents_are_chosen(name: str) -> None:
    documents = [draw_document(seed, 20) for seed in range(3)]
    gold = drawn_gold(1, documents)
    gold[0][0] = False  # a question without evidence
    choice = choose(RULES[name], documents, gold)

    def precision(settings: Any) -> float:
        rows = [
            average_precision(row, right)
            for document, marks in zip(documents, gold, strict=True)
            for row, right in zip(RULES[name].scores(document, **settings), marks, strict=True)
            if right.any()
        ]
        return sum(rows) / len(rows)

    assert choice.precision == pytest.approx(max(map(precision, RULES[name].choices(weighted=True))))
    assert choice.precision == pytest.approx(precision(choice.settings))


def test_the_best_threshold_is_as_good_as_any_of_both_forms() -> None:
    """Of so few scores each one is tried."""
    draw = np.random.default_rng(3)
    forms = set()
    for _ in range(20):
        scores, gold = draw.integers(0, 8, (3, 2, 12)) / 8, draw.random((3, 2, 12)) < 0.3
        scores += draw.integers(0, 3, (3, 2, 1))  # questions differ in how great their scores are
        gold[0, 0] = False
        pairs = [(s, g) for s, g in zip(scores.reshape(6, -1), gold.reshape(6, -1), strict=True) if g.any()]

        def mean(choice: Choice, pairs: Any = pairs) -> float:
            return float(np.mean([f1(s >= choice.thresholds(s[None])[0], g) for s, g in pairs]))

        best = best_threshold(scores, gold)
        others = [Choice({}, each, False) for each in np.unique(scores)]
        others += [Choice({}, each / 8, True) for each in range(9)]
        assert mean(best) == pytest.approx(best.f1) == pytest.approx(max(map(mean, others)))
        forms.add(best.relative)
    assert forms == {True, False}


def records(seed: int, count: int, **more: Any) -> list[Evidence]:
    draw = random.Random(seed)
    drawn = []
    for number in range(count):
        texts = tuple(draw_text(draw, 9) for _ in range(30))
        evidence = tuple(tuple(n for n in range(30) if draw.random() < 0.2) for _ in range(3))
        asked = tuple(draw_text(draw, 5) for _ in range(3))
        drawn.append(Evidence(f"{seed}.{number}", questions=asked, sentences=texts, evidence=evidence, **more))
    return drawn


def referenced(drawn: list[Evidence]) -> list[Reference]:
    return references_of(drawn)[0]


def test_nothing_is_chosen_on_the_references() -> None:
    """Other gold, and other documents beside one, change neither settings nor thresholds nor predictions."""
    test, valid = records(1, 3), records(2, 3)
    other_gold = [
        Evidence(each.id, questions=each.questions, sentences=each.sentences, evidence=((0,), (), (1, 2)))
        for each in test
    ]
    questions = [question for each in valid for question in each.questions]
    first, *others = (
        baselines([RULES["bm25"], RULES["random"]], questions, referenced(valid), referenced(own))
        for own in (test, other_gold, [*test, *records(3, 2)])
    )
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert one.chosen == two.chosen
            assert [each.to_json() for each in one.predictions] == [each.to_json() for each in two.predictions[:3]]


def test_a_relative_threshold_is_that_of_its_question() -> None:
    (document,), choice = referenced(records(1, 1)), Choice({"words": ALL, "within": 0}, 0.5, relative=True)
    best = RULES["bm25"].scores(document, **choice.settings).max(axis=1)
    found = [each["threshold"] for each in predict(RULES["bm25"], document, {"passages": choice}).questions]
    assert found == pytest.approx(as_probabilities(best - 0.5).tolist())
    assert len(set(found)) > 1


def test_lines_have_settings_and_thresholds_of_their_own() -> None:
    test = records(1, 2)
    valid = records(2, 3, lines=((4,), (), (9, 11)))
    (baseline,) = baselines([RULES["bm25"]], None, referenced(valid), referenced(test))
    assert baseline.chosen["lines"].threshold != baseline.chosen["passages"].threshold
    for prediction, record in zip(baseline.predictions, test, strict=True):
        for answer in prediction.questions:
            chosen = {n for n, p in enumerate(answer["probabilities"]) if p >= answer["threshold"]}
            listed = {n for each in answer["passages"] for n in range(each["first"], each["last"] + 1)}
            assert chosen == listed
            assert answer["answer_probability"] == max(answer["probabilities"])
            assert len(answer["line_probabilities"]) == len(record.sentences or ())
            assert answer["line_threshold"] > 0
            assert answer["line_probabilities"] != answer["probabilities"]
    (blind,) = baselines([RULES["bm25"]], None, referenced(records(2, 3)), referenced(test))
    assert [*blind.chosen] == ["passages"]
    assert "line_probabilities" not in blind.predictions[0].questions[0]
    only = [Evidence(each.id, questions=each.questions, sentences=each.sentences, lines=each.evidence) for each in test]
    (of_lines,) = baselines([RULES["bm25"]], None, referenced(only), referenced(only))
    assert [*of_lines.chosen] == ["lines"]
