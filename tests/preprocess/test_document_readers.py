"""Natural Questions and TyDi QA: what the readers keep of a release is enough for its official files and scores."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from releases import write_release

from hat_fairseq import cli
from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import choose_annotation
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.records_json import json_line
from hat_fairseq.inference.predict import line_of
from hat_fairseq.scoring.official import (
    PageAnswer,
    null_answer,
    page_answer,
    write_official_answers,
    write_squad_answers,
)


@pytest.mark.parametrize("name", ["natural_questions", "tydi_qa"])
def test_gold_answers_as_predictions_have_full_marks(name: str, tmp_path: Path) -> None:
    """Characters become tokens or bytes again: by the metric of the dataset, with what is kept of the release."""
    records = list(find_reader(name).read("valid", write_release(name, tmp_path), Counter()))
    lines = []
    for record in records:
        gold = choose_annotation(record.annotations or ())
        span = gold.spans[0] if gold.spans else None
        prediction = {
            "id": record.id,
            "type": gold.yes_no or ("span" if span else "paragraph" if gold.paragraph is not None else "none"),
            "paragraph": gold.paragraph,
            "paragraph_score": float(gold.paragraph is not None),
            "answer": span.text if span else gold.yes_no or "",
            "answer_paragraph": gold.paragraph if span else None,
            "start": span.start if span else None,
            "answer_score": float(span is not None or gold.yes_no is not None),
            "meta": {**(record.meta or {}), "mine": 1},
        }
        assert line_of(prediction, details=True)["meta"] == {"mine": 1}
        lines.append(json.dumps(prediction) + "\n")
    (tmp_path / "p.jsonl").write_text("".join(lines), encoding="utf-8")
    references = tmp_path / "valid.jsonl"
    references.write_text("".join(json_line(record) + "\n" for record in records), encoding="utf-8")
    files = ["--hypotheses", f"{tmp_path}/p.jsonl", "--references", str(references), "--json", f"{tmp_path}/s.json"]
    assert cli.main(["score", name, *files, "--bootstrap-samples", "0"]) == 0
    (scores,) = json.loads((tmp_path / "s.json").read_text()).values()
    if name == "natural_questions":  # one of eight answers is lost, and one has two spans
        assert scores["scores"]["long"]["precision"] == 100 and scores["scores"]["long"]["recall"] == 87.5
        assert scores["scores"]["short"]["f1"]["mean"] > 80
    else:
        languages = scores["scores"]["minimal"]["languages"]
        assert all(languages[language]["f1"] == 100 for language in ("arabic", "indonesian", "russian"))


def test_an_answer_on_a_page_without_candidates_is_no_long_answer(tmp_path: Path) -> None:
    root = write_release("natural_questions_odd", tmp_path)
    (_, _, record, _) = find_reader("natural_questions").read("valid", root, Counter())
    prediction = {"paragraph": 0, "answer": "Title", "answer_paragraph": 0, "start": 0, "type": "span"}
    pair = record, {**prediction, "paragraph_score": 1.0, "answer_score": 2.0}
    (row,) = json.loads(write_official_answers(tmp_path, "natural_questions", [pair]).read_text())["predictions"]
    assert row["long_answer"]["start_token"] == -1 and row["short_answers"][0]["start_token"] == 1


@pytest.mark.parametrize("name", ["natural_questions", "tydi_qa"])
def test_a_question_without_text_has_a_row_without_an_answer(name: str, tmp_path: Path) -> None:
    (_, _, record, *_) = find_reader(name).read("valid", write_release(name, tmp_path), Counter())
    path = write_official_answers(tmp_path, name, [(record, null_answer([]))])
    row = json.loads(path.read_text())
    assert page_answer(name, record, null_answer([])) == PageAnswer(None, frozenset(), "none")
    if name == "natural_questions":
        (row,) = row["predictions"]
        assert row["long_answer"]["start_token"] == -1 and row["short_answers"] == []
    else:
        assert row["passage_answer_index"] == -1 == row["minimal_answer"]["start_byte_offset"]
    assert row["example_id"] == int(record.id) and row["yes_no_answer"] == "NONE"
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
