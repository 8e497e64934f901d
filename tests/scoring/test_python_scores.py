"""Scores from Python: the metrics' functions with plain values, and the program of the page."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import REPOSITORY, write_lines

from hat_fairseq.scoring import bleu
from hat_fairseq.scoring.baselines import baselines
from hat_fairseq.scoring.labels import classification
from hat_fairseq.scoring.qa import qa, squad, triviaqa
from hat_fairseq.scoring.report import Signature
from hat_fairseq.scoring.rouge import rouge
from hat_fairseq.units import scores as evidence
from hat_fairseq.units.baselines import RULES, references_of
from hat_fairseq.units.evidence import Evidence
from hat_fairseq.units.scores import Found

PLAIN: dict[str, Any] = {"bootstrap_samples": 0}


def test_the_program_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "data-bin/mine/text/test.jsonl", [{"id": "a", "target": ["It is open .", "It rains ."]}])
    write_lines(tmp_path / "results/mine/hat.jsonl", [{"id": "a", "text": "It is open . It rains ."}])
    _, _, section = (REPOSITORY / "docs/scoring.md").read_text(encoding="utf-8").partition("\n## Scores from Python\n")
    (program,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    exec(program, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["rouge1", "rouge2", "rougeLsum"]
    assert lines[3].startswith("backend: rouge-score ")
    assert lines[3].endswith("(95 %, seed 0) | documents: 2")
    assert lines[-1].startswith("66.67 [")


def test_texts_and_their_parts() -> None:
    one = rouge(["a b. c d."], ["a b.\nc d."], **PLAIN)
    assert [score.mean for score in one.scores.values()] == pytest.approx([100] * 3)
    assert one == rouge([["a b.", "c d."]], [[["a b.", "c d."]]], **PLAIN)
    assert one.empty_hypotheses == 0
    several = rouge(["x"], [["a", "x"]], **PLAIN)
    assert several.scores["rouge1"].mean == 100
    assert several.signature != one.signature
    assert several.signature.settings["references"] == "2 (best of each document)"
    assert "words: unicode" in str(rouge(["погода"], ["погода"], **PLAIN).signature)

    report = bleu.bleu([["We met .", "It was late ."]], ["We met .\nIt was late ."], **PLAIN)
    assert report.scores["s-BLEU"].score == report.scores["document BLEU"].score == pytest.approx(100)
    assert "s-BLEU" not in bleu.bleu(["We met . It was late ."], ["We met .\nIt was late ."], **PLAIN).scores
    assert "tok:zh|" in report_of_chinese().signature.settings["document BLEU"]


def report_of_chinese() -> bleu.BleuReport:
    return bleu.bleu(["今天的天气非常好。"], ["今天的天气非常好。"], **PLAIN)


@pytest.mark.parametrize("before", [None, "5"])
def test_the_seed_of_sacrebleu_does_not_stay_in_the_environment(before: str | None, monkeypatch) -> None:
    """And the one that is there has no effect."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    texts, others = ["a b c d e", "f g h i j", "k l m n o"], ["a b c d x", "f g h i j", "k y m n o"]
    expected = bleu.bleu(others, texts, bootstrap_samples=20, seed=3)
    if before:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    assert bleu.bleu(others, texts, bootstrap_samples=20, seed=3) == expected
    assert bleu.bleu(others, texts, bootstrap_samples=20, seed=4) != expected
    assert os.environ.get("SACREBLEU_SEED") == before
    reports = bleu.compare({"first": texts, "second": others}, texts, bootstrap_samples=20)
    assert reports["first"].scores["chrF2"].p_value is None
    assert reports["second"].scores["chrF2"].p_value is not None


def test_labels() -> None:
    report = classification(["a", 2, "b"], ["a", "2", "a"], **PLAIN)
    assert report.scores["accuracy"].mean == pytest.approx(200 / 3)
    assert report.classes["2"]["f1"] == 100
    assert classification([["a", None]], [["a", "b"]], **PLAIN).missing == 1
    assert classification([None, "a"], ["a", "a"], **PLAIN).missing == 1
    numbers = classification(np.array([1, 0]), np.array([1, 1]), **PLAIN)
    assert numbers.scores["accuracy"].mean == 50
    assert [*numbers.classes] == ["0", "1"]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "message"), [("a", None, "reference 1 lacks a label"), (0.0, "a", "not 0.0")]
)
def test_labels_that_are_none_are_refused(hypothesis: Any, reference: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classification([hypothesis], [reference], **PLAIN)


def test_answers() -> None:
    report = squad(["Bob!", "x"], [["bob", "Ann"], []], **PLAIN)
    assert (report.scores["exact"].mean, report.scores["HasAns_exact"], report.scores["NoAns_exact"]) == (50, 100, 0)
    report = squad(["Bob!", "x"], [["bob", "Ann"], []], no_answer_scores=[0.5, 9], **PLAIN)
    assert report.scores["exact"].mean == report.scores["best_f1"] == 100
    assert report.scores["best_f1_thresh"] == 0.5
    assert report.signature.settings["no-answer-threshold"] == "1"
    assert squad(["今天。"], [["今天"]], **PLAIN).scores["exact"].mean == 0
    assert qa(["今天。"], [["今天"]], **PLAIN).scores["exact"].mean == 100
    report = triviaqa(["The_Lark", None], [["lark"], ["x"]], **PLAIN)
    assert (report.scores["exact_match"].mean, report.scores["predicted"], report.scores["total"]) == (50, 1, 2)


def test_equal_no_answer_scores_are_taken_in_the_order_that_is_stated() -> None:
    """The threshold after the first right answer is as good as that after both, so the one that comes first counts."""
    right, wrong, odds = ["x", "y"], [["x"], []], [0.25, 0.25]
    assert squad(right, wrong, no_answer_scores=odds, **PLAIN).scores["best_exact"] == 100
    reverse = squad(right, wrong, no_answer_scores=odds, order=[1, 0], **PLAIN)
    assert reverse.scores["best_exact"] == 50


def test_evidence_of_several_systems() -> None:
    gold = [[{0, 1}, set()], [{2}]]
    good = [[Found([0.9, 0.8, 0.1], 0.5, [(0, 1)]), Found([0, 0, 0], 0.5)], [Found([0, 0, 1], 0.5, [(2, 2)])]]
    bad = [[Found([0, 0.1, 0.9], 0.5, [(2, 2)]), Found([0, 0, 0], 0.5)], [Found([0, 0, None], 0.5)]]
    report = evidence.evidence(good, gold, **PLAIN)
    assert [score.mean for score in report.scores.values()] == [100] * 6 + [0]
    assert report.differences is None
    reports = evidence.compare({"good": good, "bad": bad}, gold, **PLAIN)
    assert reports["good"] == report
    assert reports["bad"].differences["F1"].mean == -100
    assert evidence.evidence(bad, [[{1}, set()], [set()]], units=[[0, 1], [0]], **PLAIN).scores["F1"].mean == 0
    with pytest.raises(ValueError, match="no question has evidence"):
        evidence.evidence(good, [[set(), set()], [set()]], **PLAIN)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[{7}, set()], [{2}]], "document 1 has no turn or sentence 7"),
        ([[{0}], [{2}]], "2 questions"),
        ([[{0}, set()], None], "document 2 has neither evidence nor lines"),
    ],
)
def test_evidence_of_other_documents_is_refused(wrong: list[Any], message: str) -> None:
    good = [[Found([0.9, 0.8, 0.1], 0.5, [(0, 1)]), Found([0, 0, 0], 0.5)], [Found([0, 0, 1], 0.5, [(2, 2)])]]
    with pytest.raises(ValueError, match=message):
        evidence.evidence(good, wrong, **PLAIN)


def test_lines_and_answers() -> None:
    """Lines have thresholds of their own; without, those of passages count, and the greatest probability answers."""
    found = [[Found([0.9, 0.8, 0.1], 0.5, [(0, 1)], [0.1, 0.9, 0.8], 0.85, 0.3), Found([0, 0, 0.4], 0.5)]]
    lines = [[{1}, set()]]
    scores = evidence.evidence(found, [[{0, 1}, set()]], lines=lines, **PLAIN).scores
    assert [scores[name].mean for name in evidence.LINE_FIGURES] == [100, 100]
    assert [scores[name].mean for name in evidence.ANSWER_FIGURES] == [0, 100]
    scores = evidence.evidence(found, [None], lines=[[set(), {1}]], **PLAIN).scores
    assert list(scores) == [*evidence.LINE_FIGURES, *evidence.ANSWER_FIGURES]
    assert scores["line F1"].mean == 0
    with pytest.raises(ValueError, match="evidence of 2 questions, and lines of 1"):
        evidence.evidence(found, [[{0}, set()]], lines=[[{1}]], **PLAIN)


def test_baselines_of_evidence_are_predictions() -> None:
    """That `hat score evidence` and `compare` read."""
    more = " ".join(f"word{number}" for number in range(200))
    texts = (f"We met on Monday {more}", f"It is yellow {more}", f"The price is low {more}")
    asked = ("What is the price?", "Which colour is it, yellow?")
    records = [Evidence("a", questions=asked, sentences=texts, evidence=((2,), (1,)))]
    references, skipped = references_of([*records, Evidence("b", questions=("?",), sentences=(" ",))])
    (words,) = baselines([RULES["bm25"]], None, references, references)
    assert skipped == 1
    assert words.chosen["passages"].f1 == 1
    (prediction,) = words.predictions
    assert [each["passages"][0]["text"] for each in prediction.questions] == [texts[2], texts[1]]
    found = [Found(each["probabilities"], each["threshold"]) for each in prediction.questions]
    assert evidence.evidence([found], [[{2}, {1}]], **PLAIN).scores["F1"].mean == 100


@pytest.mark.parametrize("metric", [rouge, bleu.bleu, classification, squad, qa, triviaqa])
def test_lists_that_do_not_fit_are_refused(metric: Any) -> None:
    with pytest.raises(ValueError, match="not as many of each: 1 hypotheses, 2 references"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="hypotheses is one text: give a list"):
        metric("ab", ["a", "b"])
    with pytest.raises(ValueError, match="no documents to score"):
        metric([], [])


def test_settings_that_are_unknown_are_refused() -> None:
    with pytest.raises(ValueError, match="the seed must be at least 1"):
        bleu.bleu(["a"], ["a"], seed=0)


@pytest.mark.parametrize("name", ["backend", "words", "several_references", "hypothesis_sentences"])
def test_other_values_of_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="'other'"):
        rouge(["a"], ["a"], **{name: "other"})


def test_signatures() -> None:
    assert str(Signature({"a": "1", "b": "2"}, "title")) == "title | a: 1 | b: 2"
    assert str(Signature({"a": "1"})) == "a: 1"
