"""`hat score triviaqa`: golden figures of the authors' `triviaqa_evaluation.py`, and how pages become one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring.triviaqa import exact, f1, join_pages, normalize, read_golds

GOLDS = {
    "tc_1": ["west sunset boulevard", "sunset blvd", "sunset boulevard"],
    "tc_2": ["mt rushmore", "mount rushmore s presidents"],
    "bb_3": ["7", "seven"],
    "qw--4": ["beatles"],
    "sfq_5": ["o neill"],
    "odql_6": ["", "the who"],
}
PREDICTIONS = {
    "tc_1": "Sunset Blvd.",
    "tc_2": "the Presidents of Mount_Rushmore",
    "bb_3": "Seven of 7",
    "sfq_5": "O’Neill",
    "odql_6": "The",
    "other": "x",
}
EXACT, F1 = 50.0, 54.166666666666664  # what that script (as of 2017, its last version) prints for them


def release(questions: dict[str, list[str]], **changes: Any) -> dict[str, Any]:
    data = [{"QuestionId": i, "Answer": {"NormalizedAliases": each}} for i, each in questions.items()]
    return {"Data": data, "Domain": "Wikipedia", "VerifiedEval": False, "Version": 1.0, **changes}


def run(tmp_path: Path, hypotheses: str, references: str) -> dict[str, Any]:
    words = ["score", "triviaqa", "--hypotheses", tmp_path / hypotheses, "--references", tmp_path / references]
    assert cli.main([str(word) for word in (*words, "--json", tmp_path / "score.json", "--overwrite")]) == 0
    (record,) = json.loads((tmp_path / "score.json").read_text()).values()
    return record


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The_Eiffel  Tower!", "eiffel tower"),
        ("O’Neill's `co´t", "o neill s co t"),  # punctuation, also typographic, becomes a space
        ("An apple,a pear;the end", "apple pear end"),  # and so an article appears
        ("«Ål» theory", "«ål» theory"),
        ("The", ""),
    ],
)
def test_normalization(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_nothing_in_common_is_zero_even_for_two_empty_texts() -> None:
    assert f1("the", "") == 0 and exact("the", "") == 1 and f1("bus", "car") == 0
    assert f1("red red car", "the red car.") == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))


def test_golden_figures_of_the_authors_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(release(GOLDS)))
    (tmp_path / "predictions.json").write_text(json.dumps(PREDICTIONS))
    found = run(tmp_path, "predictions.json", "dev.json")
    printed = capsys.readouterr()
    assert found["scores"]["exact_match"]["mean"] == pytest.approx(EXACT) and found["predicted"] == 5
    assert found["scores"]["f1"]["mean"] == pytest.approx(F1) and found["questions"] == 6
    assert "1 of 6 questions have no prediction and count 0" in printed.err and "exact_match" in printed.out
    assert "1 questions are not in" in printed.err and "do not count: other" in printed.err


def test_human_answers_count_and_only_verified_questions_if_the_file_says_so(tmp_path: Path) -> None:
    content = release(GOLDS, VerifiedEval=True)
    content["Data"][0] |= {"QuestionPartOfVerifiedEval": True}
    content["Data"][0]["Answer"]["HumanAnswers"] = ["The Hill"]
    content["Data"][1] |= {"QuestionPartOfVerifiedEval": False}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    (tmp_path / "predictions.json").write_text('{"tc_1": "hill"}')
    assert read_golds(str(tmp_path / "dev.json")) == {"tc_1": [*GOLDS["tc_1"], "The Hill"]}
    assert run(tmp_path, "predictions.json", "dev.json")["scores"]["exact_match"]["mean"] == 100


def test_of_several_pages_the_surest_one_answers(tmp_path: Path) -> None:
    pages = [("a.txt", "wrong", 0.5), ("b.txt", "Sunset Blvd", -2.0), ("c.txt", "", -9.0), ("d.txt", "wrong", -1.0)]
    rows = [{"id": f"tc_1--{page}", "answer": text, "no_answer_score": odds} for page, text, odds in pages]
    rows += [{"id": "bb_3--a--b.txt", "answer": "8", "no_answer_score": 1.0}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    golds = [
        {"id": f"{i}--{page}", "meta": {"triviaqa": {"question": i, "answers": GOLDS[i]}}}
        for i in ("tc_1", "bb_3")
        for page in ("a.txt", "b.txt")
    ]
    (tmp_path / "valid.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golds))
    found = run(tmp_path, "p.jsonl", "valid.jsonl")
    assert found["scores"]["exact_match"]["mean"] == 50 and found["questions"] == found["predicted"] == 2
    with pytest.raises(ValueError, match="several answers to question 'q' without no_answer_score"):
        join_pages({"q--a": "x", "q--b": "y"}, None, "p.json")


REFUSED = [
    ("r.json", release(GOLDS, Domain="Web"), "r.json: its Domain is 'Web'; only the part on Wikipedia is scored"),
    ("r.json", release({"a": []}), "question 'a' has no answers; give a file that has them"),
    ("r.json", release({}), "has no questions: nothing to score"),
    ("r.jsonl", {"id": "a", "answers": []}, r"r\.jsonl:1: there is no meta"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED)
def test_other_references_are_refused(name: str, content: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(content) + "\n")
    with pytest.raises(ValueError, match=message):
        read_golds(str(tmp_path / name))
