"""`hat score` of texts, labels and answers that show nothing: they count as empty ones do."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import hat, refusal, write_lines
from invisible import INVISIBLE, SURROGATES, VISIBLE, drawn

BLANKS: list[Any] = [None, *INVISIBLE, *drawn("scores", 5, without="\n" + SURROGATES)]
TEXTS = ["The mill closed in spring.", "It rained all day long.", "Nobody was there at noon."]


def scored(folder: Path, metric: str, hypotheses: list[Any], references: list[Any]) -> dict[str, Any]:
    """The record of the only system of a command that succeeds."""
    files = [write_lines(folder / "h.jsonl", hypotheses), "--references", write_lines(folder / "r.jsonl", references)]
    flags = ["--bootstrap-samples", 0, "--out", folder / "score.json"]
    assert hat("score", metric, *files, *flags) == 0
    record = json.loads((folder / "score.json").read_text())
    (system,) = record.get("systems", record).values()
    return system


def mean_of(figure: Any) -> float:
    """A figure with an interval, or without."""
    return float(figure["mean"] if isinstance(figure, dict) else figure)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["bleu", "rouge"])
def test_an_empty_hypothesis_is_counted_and_scored_as_one(metric: str, tmp_path: Path) -> None:
    references = [{"id": str(number), "target": [text]} for number, text in enumerate(TEXTS)]
    expected = None
    for blank in ("", *BLANKS):
        for text in (blank, [blank or "", blank or ""]):
            hypotheses = [{"id": str(number), "text": text} for number, text in enumerate([*TEXTS[:2], text])]
            system = scored(tmp_path, metric, hypotheses, references)
            assert system["empty_hypotheses"] == 1
            if not isinstance(text, list):
                expected = expected or system
                assert system == expected


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["bleu", "rouge"])
def test_an_empty_reference_is_refused(metric: str, tmp_path: Path) -> None:
    hypotheses = write_lines(tmp_path / "h.jsonl", [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])
    for blank in ("", *BLANKS):
        for target in (blank, [blank or ""], [[TEXTS[1]], [blank or ""]]):
            rows = [{"id": "a", "target": TEXTS[0]}, {"id": "b", "target": target}]
            references = write_lines(tmp_path / "r.jsonl", rows)
            printed = refusal("score", metric, hypotheses, "--references", references)
            assert "r.jsonl: the reference of document 'b' is empty" in printed
    lines = (tmp_path / "h.txt", tmp_path / "r.txt")
    for path, text in zip(lines, ("Rain.", "\u2060\u2800"), strict=True):
        path.write_text(f"The mill closed.\n{text}\n", encoding="utf-8")
    printed = refusal("score", metric, lines[0], "--references", lines[1])
    assert "r.txt: the reference of document 2 is empty" in printed


@pytest.mark.parametrize("blank", BLANKS[1:])
def test_segments_that_show_nothing_are_empty(blank: str, tmp_path: Path) -> None:
    """Their characters are no words; the text of their document may have them, or not."""
    references = [{"id": "a", "target": [*TEXTS, ""]}]
    expected = scored(tmp_path, "bleu", [{"id": "a", "text": " ".join(TEXTS), "segments": [*TEXTS, ""]}], references)
    references = [{"id": "a", "target": [*TEXTS, blank]}]
    hypothesis = {"id": "a", "text": " ".join(TEXTS), "segments": [*TEXTS, blank]}
    assert scored(tmp_path, "bleu", [hypothesis], references) == expected
    joined = {"id": "a", "text": " ".join([*TEXTS, blank]), "segments": [*TEXTS, blank]}
    assert scored(tmp_path, "bleu", [joined], references)["scores"]["s-BLEU"] == expected["scores"]["s-BLEU"]


def test_visible_texts_are_compared_as_written(tmp_path: Path) -> None:
    references = [{"id": str(n), "target": [f"One two three {text} five."]} for n, text in enumerate(VISIBLE)]
    hypotheses = [{"id": row["id"], "text": row["target"][0]} for row in references]
    assert scored(tmp_path, "bleu", hypotheses, references)["scores"]["document BLEU"]["score"] == pytest.approx(100)


@pytest.mark.parametrize("blank", ["", *BLANKS[1:]])
def test_labels_that_show_nothing_are_refused(blank: str, tmp_path: Path) -> None:
    references = write_lines(tmp_path / "r.jsonl", [{"id": "a", "label": "x"}])
    hypotheses = write_lines(tmp_path / "h.jsonl", [{"id": "a", "label": blank}])
    error = refusal("score", "classification", hypotheses, "--references", references)
    assert "h.jsonl:1: a label must be a string" in error


@pytest.mark.parametrize("metric", ["squad", "qa"])
@pytest.mark.parametrize("blank", ["", *BLANKS])
def test_answers_that_show_nothing_are_none(blank: str, metric: str, tmp_path: Path) -> None:
    """As predictions, and as the gold answers of questions and of annotators."""
    text = f"It was {blank} Ann."
    answers = [{"text": blank, "start": 7}] if blank else []
    gold: dict[str, Any] = {"id": "a", "question": "Who?", "text": text, "answers": answers}
    figures = scored(tmp_path, metric, [{"id": "a", "answer": blank, "no_answer_score": 0}], [gold])["scores"]
    assert figures["exact"] == figures["NoAns_exact"] == 100
    assert "HasAns_exact" not in figures
    if metric == "qa":
        annotations = [{"paragraph": 0, "spans": answers}]
        gold = {"id": "a", "question": "Who?", "paragraphs": [text], "annotations": annotations}
        figures = scored(tmp_path, metric, [{"id": "a", "answer": blank, "paragraph": 0}], [gold])["scores"]
        assert figures["NoAns_exact"] == 100


@pytest.mark.parametrize("blank", BLANKS)
def test_triviaqa(blank: str, tmp_path: Path) -> None:
    meta = {"triviaqa": {"question": "q", "answers": ["Ann"]}}
    pages = [{"id": each, "question": "Who?", "text": "Ann", "meta": meta} for each in ("x", "y")]
    # the page whose answer has a text answers
    lines = [{"id": "x", "answer": blank, "no_answer_score": -9}, {"id": "y", "answer": "Ann", "no_answer_score": 1}]
    assert scored(tmp_path, "triviaqa", lines, pages)["scores"]["exact_match"] == 100


def test_rows_of_documents_without_text_are_empty_answers_or_wrong_labels(tmp_path: Path) -> None:
    """What `--on-empty keep` writes: an id and `"empty": true`."""
    empty = {"id": "b", "empty": True}
    label = {"id": "a", "label": "x"}
    system = scored(tmp_path, "classification", [label, empty], [label, {"id": "b", "label": "x"}])
    assert (system["figures"]["accuracy"]["mean"], system["missing"]) == (50, 1)
    labels = [{"id": "a", "labels": ["x", "y"]}, {"id": "b", "labels": ["x", "y", "x"]}]
    assert scored(tmp_path, "classification", [labels[0], empty], labels)["missing"] == 3
    question = {"question": "Who?", "text": "Ann left.", "answers": [{"text": "Ann", "start": 0}]}
    for gold, right in ((question["answers"], 50), ([], 100)):
        golds = [{**question, "id": "a"}, {**question, "id": "b", "answers": gold}]
        for odds in ({}, {"no_answer_score": -3.5}):
            answers = [{"id": "a", "answer": "Ann", **odds}, empty]
            for metric in ("qa", "squad") if not odds else ("squad",):
                figures = scored(tmp_path, metric, answers, golds)["scores"]
                assert mean_of(figures["exact"]) == right, (metric, odds)
    document = {"questions": ["Who?"], "sentences": ["Ann left.", "It rained."], "evidence": [[0]]}
    blank = {"id": "b", "questions": ["Who?"], "sentences": [" "], "evidence": [[]]}
    found = {"question": "Who?", "probabilities": [0.9, 0.1], "passages": [{"first": 0, "last": 0}]}
    lines = [{"id": "a", "threshold": 0.5, "questions": [found]}, empty]
    figures = scored(tmp_path, "evidence", lines, [{**document, "id": "a"}, blank])["figures"]
    assert {mean_of(figure) for figure in figures.values()} == {100}


@pytest.mark.parametrize(
    ("name", "text"), {"h.csv": 'id,answer\n0,\n1,""\n2,Ann\n', "h.tsv": "id\tanswer\n0\t\n1\t\n2\tAnn\n"}.items()
)
def test_an_empty_cell_of_a_table_is_an_empty_answer(name: str, text: str, tmp_path: Path) -> None:
    questions = [{"id": str(n), "question": "Who?", "text": "Ann left.", "answers": []} for n in range(3)]
    references = write_lines(tmp_path / "r.jsonl", questions)
    (tmp_path / name).write_text(text)
    files = [tmp_path / name, "--references", references, "--out", tmp_path / f"{name}.json"]
    assert hat("score", "squad", *files) == 0
    (system,) = json.loads((tmp_path / f"{name}.json").read_text()).values()
    assert mean_of(system["scores"]["exact"]) == pytest.approx(200 / 3)
