"""Natural Questions and TyDi QA: what the readers keep of a release is enough for its official files."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from releases import write_release

from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import choose_annotation
from hat_fairseq.data.readers import find_reader
from hat_fairseq.inference.predict import line_of
from hat_fairseq.scoring.official import (
    PageAnswer,
    null_answer,
    page_answer,
    write_official_answers,
    write_squad_answers,
)


@pytest.mark.parametrize("name", ["natural_questions", "tydi_qa"])
def test_gold_answers_as_predictions_are_those_of_the_release(name: str, tmp_path: Path) -> None:
    """Characters become tokens or bytes again, with what is kept of the release."""
    right: Counter[str] = Counter()
    for record in find_reader(name).read("valid", write_release(name, tmp_path), Counter()):
        gold = choose_annotation(record.annotations or ())
        span = gold.spans[0] if gold.spans else None
        prediction = {
            "id": record.id,
            "type": gold.yes_no or ("span" if span else "paragraph" if gold.paragraph is not None else "none"),
            "paragraph": gold.paragraph,
            "answer": span.text if span else gold.yes_no or "",
            "answer_paragraph": gold.paragraph if span else None,
            "start": span.start if span else None,
            "meta": {**(record.meta or {}), "mine": 1},
        }
        assert line_of(prediction, details=True)["meta"] == {"mine": 1}
        answer, golds = page_answer(name, record, prediction), annotations_of(name, record)
        right["passages"] += answer.passage is not None
        right["spans"] += bool(answer.spans)
        assert answer.passage is None or any(answer.passage == passage for passage, _ in golds)
        assert not answer.spans or any(answer.spans <= spans for _, spans in golds)
    assert right == {"natural_questions": {"passages": 7, "spans": 5}, "tydi_qa": {"passages": 6, "spans": 4}}[name]


def annotations_of(name: str, record: Any) -> list[tuple[tuple[int, ...] | None, frozenset[tuple[int, ...]]]]:
    """The passage and the short answers of each annotator."""
    answers = []
    for each in record.meta[name]["annotations"]:
        if name == "natural_questions":
            passage = tuple(each["long_answer"][key] for key in ("start_token", "end_token"))
            spans = [(span["start_token"], span["end_token"]) for span in each["short_answers"]]
        else:
            passage = (each["passage_answer"]["candidate_index"],)
            spans = [tuple(each["minimal_answer"][key] for key in ("plaintext_start_byte", "plaintext_end_byte"))]
        answers.append((passage if passage[0] >= 0 else None, frozenset(spans)))
    return answers


def test_an_answer_on_a_page_without_candidates_is_no_long_answer(tmp_path: Path) -> None:
    root = write_release("natural_questions_odd", tmp_path)
    (_, _, record, _) = find_reader("natural_questions").read("valid", root, Counter())
    prediction = {"paragraph": 0, "answer": "Title", "answer_paragraph": 0, "start": 0, "type": "span"}
    pair = record, {**prediction, "paragraph_score": 1.0, "answer_score": 2.0}
    (row,) = json.loads(write_official_answers(tmp_path, "natural_questions", [pair]).read_text())["predictions"]
    assert row["long_answer"]["start_token"] == -1
    assert row["short_answers"][0]["start_token"] == 1


@pytest.mark.parametrize("name", ["natural_questions", "tydi_qa"])
def test_a_question_without_text_has_a_row_without_an_answer(name: str, tmp_path: Path) -> None:
    (_, _, record, *_) = find_reader(name).read("valid", write_release(name, tmp_path), Counter())
    path = write_official_answers(tmp_path, name, [(record, null_answer([]))])
    row = json.loads(path.read_text())
    assert page_answer(name, record, null_answer([])) == PageAnswer(None, frozenset(), "none")
    if name == "natural_questions":
        (row,) = row["predictions"]
        assert row["long_answer"]["start_token"] == -1
        assert row["short_answers"] == []
    else:
        assert row["passage_answer_index"] == -1 == row["minimal_answer"]["start_byte_offset"]
    assert row["example_id"] == int(record.id)
    assert row["yes_no_answer"] == "NONE"
    squad = [{"id": "a", "answer": "x", "no_answer_score": -2.5, "n_best": []}]
    write_squad_answers(tmp_path, [*squad, {"id": "b", **null_answer(squad)}])
    assert json.loads((tmp_path / "predictions.json").read_text()) == {"a": "x", "b": ""}
    assert json.loads((tmp_path / "null_odds.json").read_text()) == {"a": -2.5, "b": -2.5}


@pytest.mark.parametrize(
    "record",
    [
        DocumentQuestion("7", question="q", paragraphs=("x",)),
        DocumentQuestion("a7", question="q", paragraphs=("x",), meta={"tydi_qa": {}}),
    ],
)
def test_records_of_another_dataset_are_no_official_answers(record: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not from tydi_qa, or not from its"):
        write_official_answers(tmp_path, "tydi_qa", [(record, {})])
