"""`hat score` of answers: cases by hand, notes and thresholds; see also `test_authors.py`."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import hat, write_lines

from hat_fairseq.scoring.qa import squad_match, triviaqa_match

TEXT = "Ann and Bob met at noon in the old harbour."


@pytest.mark.parametrize("match", [squad_match, triviaqa_match])
def test_the_best_gold_answer_counts(match: Any) -> None:
    f1 = pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert match("red red car", ["bus", "the red car."]) == (0, f1) and match("bus", ["car"]) == (0, 0)


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
    assert squad_match(answer, [gold]) == (1, 1) and squad_match("theory", [gold])[0] == 0


def run(folder: Path, metric: str, records: list[dict], lines: list[dict], *more: str) -> int:
    files = [write_lines(folder / "p.jsonl", lines), "--references", write_lines(folder / "r.jsonl", records)]
    flags = ["--json", folder / "out.json", "--bootstrap-samples", "0", "--overwrite"]
    return hat("score", metric, "--hypotheses", *files, *flags, *more)


def scores(folder: Path) -> dict[str, Any]:
    (record,) = json.loads((folder / "out.json").read_text()).values()
    return record["scores"]


def question(name: str, *answers: str, **more: Any) -> dict[str, Any]:
    places = [{"text": text, "start": TEXT.index(text)} for text in answers]
    return {"id": name, "question": "?", "text": TEXT, "answers": places, **more}


def test_a_threshold_decides_in_squad_alone(tmp_path: Path, capsys) -> None:
    records, odds = [question("a", "Bob"), question("b")], 0.5000000012345  # `hat predict` has a flag for it
    lines = [{"id": "a", "answer": "Bob!", "no_answer_score": odds}, {"id": "b", "answer": "x", "no_answer_score": 9}]
    assert run(tmp_path, "squad", records, lines) == 0 and f"best_f1_thresh     {odds}\n" in capsys.readouterr().out
    assert scores(tmp_path)["exact"] == scores(tmp_path)["best_f1"] == 100
    assert run(tmp_path, "qa", records, lines) == 0 and scores(tmp_path)["exact"] == 50


def page(number: int, dataset: str, **meta: Any) -> dict[str, Any]:
    return {"id": str(number), "question": "?", "paragraphs": ["a b", "c"], "meta": {dataset: meta}}


def line(number: int, paragraph: int | None, score: float) -> dict[str, Any]:
    scores = {"paragraph_score": score, "answer_score": score}
    return {"id": str(number), "type": "none", "paragraph": paragraph, "answer": "", "start": None, **scores}


def test_parts_with_one_annotation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = {"start_token": 0, "end_token": 2}
    annotations = [{"long_answer": long, "short_answers": [], "yes_no_answer": "NONE"}]
    candidates = [[0, 2, 0, 2], [3, 4, 3, 1]]
    records = [page(1, "natural_questions", candidates=candidates, annotations=annotations)]
    lines = [line(1, 0, 0)]
    assert run(tmp_path, "natural_questions", records, lines) == 0 and scores(tmp_path)["long"]["f1"]["mean"] == 0
    assert "1 of 1 questions have fewer than 2 annotations, so they have no answer" in capsys.readouterr().err
    assert run(tmp_path, "natural_questions", records, lines, "--annotators", "1") == 0
    assert scores(tmp_path)["long"]["f1"]["mean"] == 100 and capsys.readouterr().err == ""


def test_without_a_language_to_average_the_mean_is_0(tmp_path: Path, capsys) -> None:
    minimal = {"plaintext_start_byte": 4, "plaintext_end_byte": 8}
    annotation = {"passage_answer": {"candidate_index": 7}, "minimal_answer": minimal, "yes_no_answer": "NONE"}
    meta = {"language": "english", "candidates": [[7, 0], [8, 5]], "annotations": [annotation] * 3}
    lines = [line(0, 0, 5), line(6, 0, 9)]
    assert run(tmp_path, "tydi_qa", [page(0, "tydi_qa", **meta)], lines, "--bootstrap-samples", "9") == 0
    passages = scores(tmp_path)["passage"]
    assert passages["f1"] == {"mean": 0, "low": None, "high": None} and passages["languages"]["english"]["f1"] == 100
    note = "p.jsonl: 1 predictions are of questions that the references lack, and do not count"
    assert note in capsys.readouterr().err
