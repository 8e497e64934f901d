"""Scores against other documents' references."""

from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from hat_fairseq.scoring.rouge import score_against_others
from hat_fairseq.scoring.rouge_settings import RougeSettings

REFERENCES = [["the cat sat .", "it slept ."], ["a dog ran ."], ["the cat ran away .", "a dog slept ."]]
HYPOTHESES = ["the cat sat . it slept .", "a dog ran .", "a cat ran away ."]


def test_it_is_the_mean_over_all_pairs_of_different_documents() -> None:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeLsum"], use_stemmer=True)
    pairs = [
        scorer.score("\n".join(reference), hypothesis.replace(". ", ".\n"))
        for i, hypothesis in enumerate(HYPOTHESES)
        for j, reference in enumerate(REFERENCES)
        if i != j
    ]
    expected = {name: 100 * sum(pair[name].fmeasure for pair in pairs) / 6 for name in pairs[0]}
    assert score_against_others(HYPOTHESES, [[each] for each in REFERENCES], RougeSettings()) == pytest.approx(expected)


def test_a_constant_loses_little_and_a_single_document_has_no_others() -> None:
    same = score_against_others(["a dog ran ."] * 3, [[["a dog ran ."]]] * 3, RougeSettings())
    assert same == pytest.approx({"rouge1": 100, "rouge2": 100, "rougeLsum": 100})
    with pytest.raises(ValueError, match="one document alone"):
        score_against_others(["a"], [[["a"]]], RougeSettings())
