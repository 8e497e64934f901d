"""`hat score squad`, `triviaqa` and `qa`: cases by hand, and what is refused; see also `test_authors.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring.qa import squad_match, triviaqa_match

PAGES = ["It was cold.", "Ann and Bob met at noon in the old harbour."]
HARBOUR = {"text": "the old harbour", "start": 27}
OTHERS = [{"text": "Bob", "start": 8}, {"text": "Ann", "start": 0}]


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
def test_answers_that_are_the_same_in_squad(answer: str, gold: str) -> None:
    assert squad_match(answer, [gold]) == (1, 1) and squad_match("theory", [gold])[0] == 0
    assert squad_match("«stop»", ["stop"]) == (0, 0)  # ASCII punctuation only


def test_f1_counts_words_as_often_as_they_occur() -> None:
    f1 = pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    for match in (squad_match, triviaqa_match):
        assert match("red red car", ["bus", "the red car."]) == (0, f1) and match("bus", ["car"]) == (0, 0)
    assert squad_match("", []) == squad_match("the", ["a!"]) == (1, 1)  # no answer
    assert triviaqa_match("O’Neill's `co´t", ["o neill s co t"]) == (1, 1)
    assert triviaqa_match("the", [""]) == (1, 0)  # no common words


def run(folder: Path, metric: str, records: list[dict], lines: list[dict]) -> int:
    for name, rows in (("r.jsonl", records), ("h.jsonl", lines)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ["--hypotheses", str(folder / "h.jsonl"), "--references", str(folder / "r.jsonl")]
    return cli.main(
        ["score", metric, *files, "--bootstrap-samples", "0", "--overwrite", "--json", f"{folder}/out.json"]
    )


def scores(folder: Path) -> dict[str, Any]:
    (record,) = json.loads((folder / "out.json").read_text()).values()
    return record["scores"]


def test_spans_yes_no_paragraphs_and_no_answer(tmp_path: Path) -> None:
    cases = [
        ([{"paragraph": 1, "spans": [HARBOUR]}, {}], "harbour", 1),  # F1 2/3
        ([{"paragraph": 1, "spans": OTHERS}], "Ann and Bob", 0),  # from the first to the last span
        ([{"paragraph": 0, "yes_no": "yes"}], "no", 0),
        ([{"paragraph": 0}, {"paragraph": 1}], "", 1),
        ([{}], "cold", None),
    ]
    records = [
        {"id": str(n), "question": "?", "paragraphs": PAGES, "annotations": each} for n, (each, *_) in enumerate(cases)
    ]
    lines = [{"id": str(n), "answer": text, "paragraph": number} for n, (_, text, number) in enumerate(cases)]
    assert run(tmp_path, "qa", records, lines) == 0
    expected = {"exact": 40, "f1": 100 * (2 + 2 / 3) / 5, "total": 5}
    expected |= {"HasAns_exact": 100 / 3, "HasAns_f1": 100 * (1 + 2 / 3) / 3, "HasAns_total": 3}
    expected |= {"NoAns_exact": 50, "NoAns_f1": 50, "NoAns_total": 2, "yes_no": 0, "paragraph": 80}
    assert scores(tmp_path) == pytest.approx(expected)


def question(name: str, *answers: str, **more: Any) -> dict[str, Any]:
    places = [{"text": text, "start": PAGES[1].index(text)} for text in answers]
    return {"id": name, "question": "?", "text": PAGES[1], "answers": places, **more}


def test_a_threshold_decides_in_squad_alone(tmp_path: Path) -> None:
    records = [question("a", "Bob"), question("b")]
    lines = [{"id": "a", "answer": "Bob!", "no_answer_score": 0.5}, {"id": "b", "answer": "x", "no_answer_score": 9}]
    assert run(tmp_path, "squad", records, lines) == 0
    assert scores(tmp_path)["exact"] == scores(tmp_path)["best_f1"] == 100 and scores(tmp_path)["best_f1_thresh"] == 0.5
    assert run(tmp_path, "qa", records, lines) == 0 and scores(tmp_path)["exact"] == 50


def test_of_several_pages_the_surest_one_with_a_text_answers(tmp_path: Path) -> None:
    answers = {"a": ("wrong", 0.5), "b": ("Sunset Blvd", -2.0), "c": ("", -9.0), "d": ("wrong", -1.0)}
    meta = {"triviaqa": {"question": "tc_1", "answers": ["sunset blvd", "sunset boulevard"]}}
    records = [{**question(f"tc_1--{page}"), "meta": meta} for page in answers]
    lines = [{"id": f"tc_1--{page}", "answer": text, "no_answer_score": n} for page, (text, n) in answers.items()]
    assert run(tmp_path, "triviaqa", records, lines) == 0
    assert scores(tmp_path) == {"exact_match": 100, "f1": 100, "total": 1, "predicted": 1}


TRIVIA = {"question": "q", "answers": ["x"]}
A, B = {"id": "a", "answer": "x"}, {"id": "b", "answer": "x"}
REFUSED = [
    ("squad", [question("b")], [A], "h.jsonl lacks 1 of 1 ids, the first is 'b'"),
    ("squad", [question("b")], [A, B], "r.jsonl lacks 1 of 2 ids, the first is 'a'"),
    ("squad", [question("a")], [{"id": "a", "answer": 3}], "h.jsonl:1: answer must be a string, not 3"),
    ("squad", [question("a"), question("b")], [{**A, "no_answer_score": 1}, B], "1 of 2 lines have a no_answer_score"),
    ("squad", [question("a")], [{**A, "no_answer_score": "1"}], "h.jsonl:1: no_answer_score must be a number, not '1'"),
    ("squad", [{"id": "a", "label": "x"}], [A], "r.jsonl:1: unknown key 'label'"),
    (
        "qa",
        [{"id": "a", "question": "?", "text": "x"}],
        [A],
        "document 'a' (REFERENCES:1) has no answers or annotations",
    ),
    ("triviaqa", [question("a")], [A], "meta of TriviaQA: expected a JSON object, found None"),
    ("triviaqa", [question("a", meta={"triviaqa": {**TRIVIA, "answers": []}})], [A], "the question has no answers"),
    (
        "triviaqa",
        [question(n, meta={"triviaqa": TRIVIA}) for n in "ab"],
        [A, B],
        "several answers to a question, none with a",
    ),
]


@pytest.mark.parametrize(("metric", "records", "lines", "message"), REFUSED)
def test_what_is_refused(metric: str, records: list, lines: list, message: str, tmp_path: Path, capsys) -> None:
    assert run(tmp_path, metric, records, lines) == 2
    assert message.replace("REFERENCES", f"{tmp_path}/r.jsonl") in capsys.readouterr().err
