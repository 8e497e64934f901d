"""The official formats of Natural Questions and TyDi QA: what is written comes back, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq.scoring.natural_questions_files import (
    NaturalAnswer,
    NaturalPrediction,
    Span,
    read_natural_annotations,
    read_natural_predictions,
    write_natural_predictions,
)
from hat_fairseq.scoring.tydi_qa_files import (
    TydiAnswer,
    TydiPrediction,
    read_tydi_annotations,
    read_tydi_predictions,
    write_tydi_predictions,
)

NATURAL = [
    NaturalPrediction(5, NaturalAnswer(Span((3, 9), (1, 2)), (Span((3, 4)), Span(None, (1, 2)))), 1.5, -2.0),
    NaturalPrediction(-6, NaturalAnswer(yes_no="yes"), 0.0, 1.0),
]
TYDI = [
    TydiPrediction(5, "thai", TydiAnswer(0, (3, 9)), 1.5, -2.0),
    TydiPrediction(-6, "english", TydiAnswer(yes_no="no"), 0.0, 1.0),
]


def test_predictions_come_back(tmp_path: Path) -> None:
    write_natural_predictions(tmp_path / "n.json", NATURAL)
    assert list(read_natural_predictions(tmp_path / "n.json").values()) == NATURAL
    write_tydi_predictions(tmp_path / "t.jsonl", TYDI)
    assert list(read_tydi_predictions(tmp_path / "t.jsonl").values()) == TYDI


def test_the_written_layout(tmp_path: Path) -> None:
    write_natural_predictions(tmp_path / "n.json", NATURAL)
    first, second = json.loads((tmp_path / "n.json").read_text())["predictions"]
    nothing = {"start_byte": -1, "end_byte": -1, "start_token": -1, "end_token": -1}
    assert first["long_answer"] == {"start_byte": 3, "end_byte": 9, "start_token": 1, "end_token": 2}
    assert second == {
        "example_id": -6,
        "long_answer": nothing,
        "long_answer_score": 0.0,
        "short_answers": [],
        "short_answers_score": 1.0,
        "yes_no_answer": "YES",
    }
    write_tydi_predictions(tmp_path / "t.jsonl", TYDI)
    first, second = map(json.loads, (tmp_path / "t.jsonl").read_text().splitlines())
    assert first["minimal_answer"] == {"start_byte_offset": 3, "end_byte_offset": 9}
    assert second == {
        "example_id": -6,
        "language": "english",
        "passage_answer_index": -1,
        "passage_answer_score": 0.0,
        "minimal_answer": {"start_byte_offset": -1, "end_byte_offset": -1},
        "minimal_answer_score": 1.0,
        "yes_no_answer": "NO",
    }


def test_the_authors_read_what_is_written(tmp_path: Path) -> None:
    util = pytest.importorskip("natural_questions.eval_utils")
    write_natural_predictions(tmp_path / "n.json", NATURAL)
    first, second = util.read_prediction_json(str(tmp_path / "n.json")).values()
    assert str(first.long_answer_span) == "byte: [3,9) tok: [1,2)" and first.short_score == -2
    assert list(map(str, first.short_answer_span_list)) == ["byte: [3,4) tok: [-1,-1)", "byte: [-1,-1) tok: [1,2)"]
    assert second.long_answer_span.is_null_span() and second.yes_no_answer == "yes"


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


NATURAL_SCORES = {"example_id": 1, "long_answer_score": 1, "short_answers_score": 2}
TYDI_SCORES = {"example_id": 1, "language": "thai", "passage_answer_score": 1, "minimal_answer_score": 2}


def test_answers_may_be_missing(tmp_path: Path) -> None:
    path = lines(tmp_path / "n.json", {"predictions": [NATURAL_SCORES]})
    assert read_natural_predictions(path) == {1: NaturalPrediction(1, NaturalAnswer(), 1, 2)}
    path = lines(tmp_path / "t.jsonl", TYDI_SCORES)
    assert read_tydi_predictions(path) == {1: TydiPrediction(1, "thai", TydiAnswer(), 1, 2)}


def test_null_spans_are_no_answers_and_empty_minimal_answers_are(tmp_path: Path) -> None:
    null = {"start_byte": -1, "end_byte": -2, "start_token": -1, "end_token": -1}
    path = lines(
        tmp_path / "n.json", {"predictions": [{**NATURAL_SCORES, "long_answer": null, "short_answers": [null]}]}
    )
    assert read_natural_predictions(path)[1].answer == NaturalAnswer()
    minimal = {"start_byte_offset": 4, "end_byte_offset": 4}
    path = lines(tmp_path / "t.jsonl", {**TYDI_SCORES, "minimal_answer": minimal})
    assert read_tydi_predictions(path)[1].answer.minimal == (4, 4)


def span(**offsets: int) -> dict[str, Any]:
    return {"long_answer": offsets}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            span(start_byte=3, end_byte=-1),
            "prediction 1: long_answer: start_byte is 3 and end_byte is -1: both are neg",
        ),
        (span(start_byte=-1, end_byte=-1, start_token=-1, end_token=2), "start_token is -1 and end_token is 2"),
        (span(start_byte=3, end_byte=3), "start_byte 3 is not before end_byte 3"),
        (span(start_byte=1, end_byte=2, start_token=9, end_token=8), "start_token 9 is not before end_token 8"),
        (span(start_byte=3), "long_answer: there is no end_byte"),
        (
            span(start=3, end=4),
            "long_answer: no start_byte and end_byte, and no start_token and end_token, in {'start'",
        ),
        ({"long_answer": None}, "long_answer must be an object, not None"),
        (
            {"short_answers": [{"start_byte": 1, "end_byte": 2}], "yes_no_answer": "YES"},
            "YES beside an answer in the text",
        ),
        ({"yes_no_answer": "maybe"}, "yes_no_answer must be YES, NO or NONE, not 'maybe'"),
        ({"long_answer_score": None}, "long_answer_score must be a number, not None"),
        ({"example_id": "1"}, "example_id must be a number, not '1'"),
    ],
)
def test_natural_questions_refused(changes: dict, message: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "n.json", {"predictions": [{**NATURAL_SCORES, **changes}]})
    with pytest.raises(ValueError) as error:
        read_natural_predictions(path)
    assert message in str(error.value) and str(error.value).startswith(f"{path}: prediction 1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"minimal_answer": {"start_byte_offset": 3, "end_byte_offset": -1}},
            "both are negative (no answer), or neither",
        ),
        ({"minimal_answer": {"start_byte_offset": 3, "end_byte_offset": 2}}, "start_byte_offset 3 is not before"),
        ({"minimal_answer": {}}, "minimal_answer: there is no start_byte_offset"),
        (
            {"minimal_answer": {"start_byte_offset": 3, "end_byte_offset": 4}, "yes_no_answer": "no"},
            "NO beside an answer",
        ),
        ({"passage_answer_index": "2"}, "passage_answer_index must be a number, not '2'"),
        ({"language": None}, "language must be a string, not None"),
        ({"minimal_answer_score": True}, "minimal_answer_score must be a number, not True"),
    ],
)
def test_tydi_qa_refused(changes: dict, message: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", {**TYDI_SCORES, **changes})
    with pytest.raises(ValueError) as error:
        read_tydi_predictions(path)
    assert message in str(error.value) and str(error.value).startswith(f"{path}:1: ")


@pytest.mark.parametrize("read", [read_natural_annotations, read_tydi_annotations])
def test_annotations_refused(read: Callable[[list[Path]], dict], tmp_path: Path) -> None:
    question = {"example_id": 1, "language": "thai"}
    for record, message in (
        (question, "there is no annotations"),
        (
            {**question, "annotations": []},
            "no annotations: answers can be scored only where the gold answers are known",
        ),
        ({**question, "annotations": [{}]}, "annotations: there is no"),
    ):
        with pytest.raises(ValueError, match=f"r.jsonl:1: {message}"):
            read([lines(tmp_path / "r.jsonl", record)])


def test_an_id_twice_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="n.json: prediction 2: the example_id 1 for the second time"):
        read_natural_predictions(lines(tmp_path / "n.json", {"predictions": [NATURAL_SCORES, NATURAL_SCORES]}))
    with pytest.raises(ValueError, match="t.jsonl:2: the example_id 1 for the second time"):
        read_tydi_predictions(lines(tmp_path / "t.jsonl", TYDI_SCORES, TYDI_SCORES))
    with pytest.raises(ValueError, match="n.json: there is no predictions"):
        read_natural_predictions(lines(tmp_path / "n.json", NATURAL_SCORES))
    annotation = {"long_answer": {"start_token": -1, "end_token": -1}, "short_answers": [], "yes_no_answer": "NONE"}
    parts = [lines(tmp_path / name, {"example_id": 1, "annotations": [annotation]}) for name in ("a.jsonl", "b.jsonl")]
    with pytest.raises(ValueError, match="b.jsonl:1: the example_id 1 for the second time"):
        read_natural_annotations(parts)
