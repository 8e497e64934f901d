"""`hat score` of answers: cases by hand, notes and thresholds; see also `test_authors.py`."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import hat, write_lines

from hat_fairseq.scoring.qa import squad_match, triviaqa_match, words_and_signs

TEXT = "Ann and Bob met at noon in the old harbour."


@pytest.mark.parametrize("match", [squad_match, triviaqa_match])
def test_the_best_gold_answer_counts(match: Any) -> None:
    f1 = pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert match("red red car", ["bus", "the red car."]) == (0, f1)
    assert match("bus", ["car"]) == (0, 0)


def test_answers_that_are_nearly_the_same() -> None:
    assert squad_match("«stop»", ["stop"]) == (0, 0)  # ASCII punctuation only
    assert squad_match("", []) == squad_match("the", ["a!"]) == (1, 1)  # no answer
    assert triviaqa_match("O’Neill's `co´t", ["o neill s co t"]) == (1, 1)
    assert triviaqa_match("the", [""]) == (1, 0)  # no common words


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("The  Eiffel\tTower!", "eiffel tower"),
        ("an apple, a pear; the end", "apple pear end"),
        ("a.n apple", "apple"),  # punctuation goes first, so an article appears
        ("don't", "dont"),
        ("The", ""),
    ],
)
def test_answers_that_are_the_same(answer: str, gold: str) -> None:
    assert squad_match(answer, [gold]) == (1, 1)
    assert squad_match("theory", [gold])[0] == 0


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        *[("", "A", False), ("vitamin", "vitamin A", False), ("C", "C++", False), ("C#", "C", False)],
        *[("10", "1.0", False), ("5", "-5", False), ("5", ".5", False), ("1-0", "10", False), ("1,5", "15", False)],
        *[("1,000", "1000", True), ("5 %", "5%", True), ("\u22125", "-5", True), ("2010\u20132012", "2010-2012", True)],
        *[
            ("The U.S.", "the US", True),
            ("\u00abStop!\u00bb", "stop", True),
            ("F-16", "F16", True),
            ("東京。", "東 京", True),
        ],
    ],
)
def test_words_of_answers_to_questions_of_ones_own(answer: str, gold: str, same: bool) -> None:
    assert (squad_match(answer, [gold], words_and_signs)[0] == 1) == same


def run(folder: Path, metric: str, records: list[dict], lines: list[dict], *more: str) -> int:
    files = [write_lines(folder / "p.jsonl", lines), "--references", write_lines(folder / "r.jsonl", records)]
    flags = ["--out", folder / "out.json", "--bootstrap-samples", "0"]
    return hat("score", metric, *files, *flags, *more)


def scores(folder: Path) -> dict[str, Any]:
    (record,) = json.loads((folder / "out.json").read_text()).values()
    return record["scores"]


def question(name: str, *answers: str, **more: Any) -> dict[str, Any]:
    places = [{"text": text, "start": TEXT.index(text)} for text in answers]
    return {"id": name, "question": "?", "text": TEXT, "answers": places, **more}


def test_a_threshold_decides_in_squad_alone(tmp_path: Path, capsys) -> None:
    records, odds = [question("a", "Bob"), question("b")], 0.5000000012345  # `hat predict` has a flag for it
    lines = [{"id": "a", "answer": "Bob!", "no_answer_score": odds}, {"id": "b", "answer": "x", "no_answer_score": 9}]
    assert run(tmp_path, "squad", records, lines) == 0
    assert f"best_f1_thresh     {odds}\n" in capsys.readouterr().out
    assert scores(tmp_path)["exact"] == scores(tmp_path)["best_f1"] == 100
    assert run(tmp_path, "qa", records, lines) == 0
    assert scores(tmp_path)["exact"] == 50
