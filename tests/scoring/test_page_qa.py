"""`hat score natural_questions` and `tydi_qa`: the rules by hand, notes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring.official import PageAnswer
from hat_fairseq.scoring.page_qa import byte_f1, outcomes

A, B, C = (2, 4), (6, 9), (11, 12)


def page(passage: tuple[int, ...] | None = None, *spans: tuple[int, int], yes_no: str = "none") -> PageAnswer:
    return PageAnswer(passage, frozenset(spans), yes_no)


def passage(golds: list[PageAnswer], answer: PageAnswer | None, annotators: int = 2) -> tuple:
    return outcomes(golds, answer and (answer, 2.5, -1.0), annotators, in_bytes=False)[0]


def short(golds: list[PageAnswer], answer: PageAnswer | None, annotators: int = 2, in_bytes: bool = False) -> tuple:
    return outcomes(golds, answer and (answer, 2.5, -1.0), annotators, in_bytes)[1]


def test_a_question_has_an_answer_if_two_annotators_gave_one() -> None:
    one, two = [page(A), page(), page()], [page(A), page(B), page()]
    assert passage(one, page(A)) == (False, True, 0, 2.5) and passage(one, page(A), 1) == (True, True, 1, 2.5)
    assert [passage(two, page(each))[2] for each in (A, B, C)] == [1, 1, 0]  # that of any annotator
    assert passage(two, page()) == (True, False, 0, 2.5)
    assert short([page(None, A), page(), page()], page(None, A)) == (False, True, 0, -1)
    assert short([page(None, A), page(yes_no="yes"), page()], page(None, A)) == (True, True, 1, -1)


def test_short_answers_in_tokens_are_one_annotators_set() -> None:
    golds = [page(None, A, B), page(None, A), page()]
    assert [short(golds, page(None, *spans))[2] for spans in ([A], [A, B], [B], [A, C])] == [1, 1, 0, 0]
    assert short(golds, page()) == (True, False, 0, -1)  # the empty set of an annotator is no answer


def test_short_answers_in_bytes_count_as_the_f1_with_the_nearest_annotator() -> None:
    golds = [page(None, (39, 50)), page(None, (34, 50)), page()]
    values = [short(golds, page(None, span), in_bytes=True)[2] for span in ((30, 40), (39, 50), (30, 34))]
    assert values == [pytest.approx(2 * 6 / 26), 1, 0] and byte_f1(frozenset([(2, 2)]), frozenset([(0, 4)])) == 0


def test_a_yes_is_right_if_any_annotator_says_so() -> None:
    golds = [page(yes_no="yes"), page(None, A), page()]
    for in_bytes in (False, True):
        answers = [page(yes_no="yes"), page(yes_no="no"), page(None, A)]
        assert [short(golds, answer, in_bytes=in_bytes)[2] for answer in answers] == [1, 0, 1]


def natural(number: int, answered: bool = True, annotators: int = 5) -> dict[str, Any]:
    long = {"start_token": 0, "end_token": 2} if answered else {"start_token": -1, "end_token": -1}
    annotations = [{"long_answer": long, "short_answers": [], "yes_no_answer": "NONE"}] * annotators
    meta = {"natural_questions": {"candidates": [[0, 2, 0, 2], [3, 4, 3, 1]], "annotations": annotations}}
    return {"id": str(number), "question": "?", "paragraphs": ["a b", "c"], "meta": meta}


def tydi(number: int, language: str, answered: bool = True) -> dict[str, Any]:
    minimal = dict(zip(("plaintext_start_byte", "plaintext_end_byte"), (4, 8) if answered else (-1, -1), strict=True))
    annotation = {"passage_answer": {"candidate_index": 7 if answered else -1}, "minimal_answer": minimal}
    meta = {
        "language": language,
        "candidates": [[7, 0], [8, 5]],
        "annotations": [annotation | {"yes_no_answer": "NONE"}] * 3,
    }
    return {"id": str(number), "question": "?", "paragraphs": ["a b", "c"], "meta": {"tydi_qa": meta}}


def line(number: int, paragraph: int | None, score: float) -> dict[str, Any]:
    scores = {"paragraph_score": score, "answer_score": score}
    return {"id": str(number), "type": "none", "paragraph": paragraph, "answer": "", "start": None, **scores}


def run(folder: Path, metric: str, records: list[dict], lines: list[dict], *more: str) -> int:
    for name, rows in (("r.jsonl", records), ("p.jsonl", lines)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ["--hypotheses", str(folder / "p.jsonl"), "--references", str(folder / "r.jsonl")]
    more = ("--bootstrap-samples", "0", *more)
    return cli.main(["score", metric, *files, *more, "--json", str(folder / "out.json"), "--overwrite"])


def scores(folder: Path) -> dict[str, Any]:
    (record,) = json.loads((folder / "out.json").read_text()).values()
    return record["scores"]


def test_figures_of_a_case_by_hand(tmp_path: Path) -> None:
    """Scores 3: right; 2, twice: right and wrong; 1: an answer to a question without any; a fourth gold is missed."""
    records = [natural(number, answered=number != 4) for number in range(1, 6)]
    lines = [line(1, 0, 3), line(2, 0, 2), line(3, 1, 2), line(4, 0, 1), line(5, None, 9)]
    assert run(tmp_path, "natural_questions", records, lines) == 0
    found = scores(tmp_path)["long"]
    # After 3: P 1, R 1/4. After both of 2: P 2/3, R 2/4, the best F1. After 1: P 2/4, R 2/4.
    expected = {"precision": 100 * 2 / 3, "recall": 50, "threshold": 2, "f1_of_all": 50}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["f1"] == {"mean": pytest.approx(100 * 2 * (2 / 3) * 0.5 / (2 / 3 + 0.5)), "low": None, "high": None}
    assert found["recall_at_precision"] == pytest.approx({"0.5": 50, "0.75": 25, "0.9": 25})


def test_parts_with_one_annotation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, lines = [natural(1, annotators=1)], [line(1, 0, 0)]
    assert run(tmp_path, "natural_questions", records, lines) == 0 and scores(tmp_path)["long"]["f1"]["mean"] == 0
    assert "1 of 1 questions have fewer than 2 annotations, so they have no answer" in capsys.readouterr().err
    assert run(tmp_path, "natural_questions", records, lines, "--annotators", "1") == 0
    assert scores(tmp_path)["long"]["f1"]["mean"] == 100 and capsys.readouterr().err == ""


def test_each_language_has_a_threshold_and_english_is_not_in_the_mean(tmp_path: Path, capsys) -> None:
    languages = ["thai", "thai", "korean", "english", "telugu"]
    records = [tydi(number, language) for number, language in enumerate(languages)]
    lines = [line(0, 0, 5), line(1, 1, 4), line(2, 0, -9), line(3, 0, 0), line(6, 0, 9)]
    assert run(tmp_path, "tydi_qa", records, lines) == 0
    found = scores(tmp_path)["passage"]
    thresholds = {name: each["threshold"] for name, each in found["languages"].items()}
    assert thresholds == {"english": 0, "korean": -9, "thai": 5}
    assert found["f1"]["mean"] == pytest.approx((100 + 100 * 2 / 3) / 2)
    assert found["precision"] == 100 and found["recall"] == 75
    notes = capsys.readouterr().err
    assert "p.jsonl: no predictions in telugu; the mean is over the other languages" in notes
    assert "p.jsonl: 1 predictions are of questions that the references lack, and do not count" in notes
    assert run(tmp_path, "tydi_qa", records[3:4], lines, "--bootstrap-samples", "9") == 0
    assert scores(tmp_path)["passage"]["f1"] == {"mean": 0, "low": 0, "high": 0}  # no language to average


REFUSED = [
    ("natural_questions", [natural(1)], [line(2, 0, 0)], "p.jsonl lacks 1 of 1 ids, the first is '1'"),
    (
        "natural_questions",
        [natural(1)],
        [{"id": "1", "label": "x"}],
        "p.jsonl:1: no prediction of hat predict for this",
    ),
    ("natural_questions", [natural(1)], [line(1, 5, 0)], "p.jsonl:1: no prediction of hat predict for this question"),
    ("natural_questions", [natural(1, annotators=0)], [line(1, 0, 0)], "no annotations: answers can be scored only"),
    ("natural_questions", [tydi(1, "thai")], [line(1, 0, 0)], "is not from natural_questions"),
    ("tydi_qa", [tydi(1, "thai")], [line(3, 0, 0)], "none of its 1 predictions is of a question of the references"),
    ("tydi_qa", [], [line(3, 0, 0)], "r.jsonl: no questions, so there is nothing to score"),
]


@pytest.mark.parametrize(("metric", "records", "lines", "message"), REFUSED)
def test_what_is_refused(metric: str, records: list, lines: list, message: str, tmp_path: Path, capsys) -> None:
    assert run(tmp_path, metric, records, lines) == 2 and message in capsys.readouterr().err
