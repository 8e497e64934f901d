"""Answers in whole documents against what the model says of each window alone, and the options that choose them."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import hat, read_lines
from fairseq import checkpoint_utils
from fine_tuned import FineTuned
from releases import write_release

from hat_fairseq.data.ids import read_ids
from hat_fairseq.data.kinds import DocumentQuestion
from hat_fairseq.data.kinds.document_questions import DocumentQuestionOptions, DocumentWindow, answer_document
from hat_fairseq.data.kinds.questions import ScoredSpan, WindowAnswers
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.records_json import json_line, read_records
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.inference.loading import load
from hat_fairseq.scoring.official import FILES

Make = Callable[[str], FineTuned]
NAME = "natural_questions"
TYPES = ("none", "span", "paragraph", "yes", "no")


def predict(made: FineTuned, out: Path, *flags: object) -> list[dict[str, Any]]:
    assert hat("predict", made.checkpoint, made.data, "--out", out, "--device", "cpu", *flags) == 0
    return read_lines(out)


@torch.no_grad()
def by_hand(made: FineTuned, longest: int) -> list[dict[str, Any]]:
    """Every span and every paragraph of every line of text/test.source, by itself and without padding."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(made.checkpoint)], {"data": str(made.data / "bin")}
    )
    documents: dict[str, list[dict[str, Any]]] = {}
    lines = (made.data / "text/test.source").read_text().splitlines()
    for line, chunk in zip(lines, read_ids(made.data / "bin/test.ids"), strict=True):
        words = line.split()
        tokens = torch.tensor([[*map(task.source_dictionary.index, words), task.source_dictionary.eos()]])
        heads = list(model.classification_heads)
        predicted = {name: t[0] for name, t in model.eval()(tokens, classification_head_name=heads)[0].items()}
        spans, types = predicted["answer_span"], predicted["answer_type"]
        markers = [place for place, word in enumerate(words) if word == "<s>"][1:]
        ends = [*markers[1:], len(words)]
        any_type = float(types[1:].logsumexp(0) - types[0])
        window: dict[str, Any] = {"types": types.tolist(), "spans": [], "paragraphs": []}
        null = float(spans[0].sum())
        for place, (marker, end) in enumerate(zip(markers, ends, strict=True)):
            score = float(predicted["answer_paragraph"][place])
            window["paragraphs"].append((score + any_type, score, said(words[marker + 1 : end])))
            for i in range(marker + 1, end):
                for j in range(i, min(end, i + longest)):
                    score = float(spans[i, 0] + spans[j, 1]) - null + float(types[1] - types[0])
                    window["spans"].append((score, said(words[i : j + 1])))
        documents.setdefault(chunk.document_id, []).append(window)
    records = []
    for name, windows in documents.items():
        chosen = max(windows, key=lambda window: max(window["paragraphs"]))
        paragraph_score, logit, paragraph = max(chosen["paragraphs"])
        answer_score, answer = max(span for window in windows for span in window["spans"])
        kind = max(range(1, 5), key=chosen["types"].__getitem__)
        if kind > 2:
            answer_score, answer = logit + chosen["types"][kind] - chosen["types"][0], TYPES[kind]
        records.append(
            {
                "id": name,
                "type": TYPES[kind] if kind > 2 else "span",
                "paragraph": paragraph,
                "paragraph_score": paragraph_score,
                "answer": answer,
                "answer_score": answer_score,
                "windows": len(windows),
            }
        )
    return records


def said(tokens: list[str]) -> str:
    return "".join(" ".join(tokens).replace("@@ ", "").removesuffix("@@").split())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "yes"])
def test_answers_are_the_best_of_all_windows(kind: str | None, fine_tuned: Make, tmp_path: Path) -> None:
    """Also of a model that likes to say `yes`."""
    made = fine_tuned("document_qa")
    if kind:
        state = torch.load(made.checkpoint, weights_only=True)
        state["model"]["classification_heads.answer_type.out_proj.bias"][TYPES.index(kind)] += 40
        torch.save(state, tmp_path / "biased.pt")
        made = FineTuned(made.kind, made.raw, made.data, tmp_path / "biased.pt")
    predicted, wanted = predict(made, tmp_path / "p.jsonl", "--max-answer-length", 4), by_hand(made, 4)
    raw = read_lines(made.raw / "test.jsonl")
    assert [record["id"] for record in predicted] == [record["id"] for record in raw] == [w["id"] for w in wanted]
    assert max(record["windows"] for record in wanted) > 1
    assert {record["type"] for record in predicted} == {kind or "span"}
    for record, expected, example in zip(predicted, wanted, raw, strict=True):
        assert record["type"] == expected["type"]
        assert record["paragraph_score"] == pytest.approx(expected["paragraph_score"], abs=1e-3)
        assert record["answer_score"] == pytest.approx(expected["answer_score"], abs=1e-3)
        assert said([example["paragraphs"][record["paragraph"]]]) == expected["paragraph"]
        assert said([record["answer"]]) == expected["answer"]
        if record["type"] == "span":
            text = example["paragraphs"][record["answer_paragraph"]]
            assert text[record["start"] :].startswith(record["answer"])
        else:
            assert record["answer_paragraph"] is record["start"] is None
    again = predict(made, tmp_path / "one.jsonl", "--max-answer-length", 4, "--batch-size", 1)
    for one, other in zip(again, predicted, strict=True):
        for key in one:
            assert one[key] == (pytest.approx(other[key], abs=1e-4) if key.endswith("_score") else other[key])


def test_thresholds_leave_out_what_has_lower_scores(fine_tuned: Make, tmp_path: Path) -> None:
    made = fine_tuned("document_qa")
    predicted = predict(made, tmp_path / "p.jsonl")
    paragraph, answer = (
        sorted(r[f"{name}_score"] for r in predicted)[len(predicted) // 2] for name in ("paragraph", "answer")
    )
    flags = ["--threshold", f"paragraph={paragraph}", "--threshold", f"answer={answer}", "--overwrite"]
    some = predict(made, tmp_path / "p.jsonl", *flags)
    types = set()
    for record, before in zip(some, predicted, strict=True):
        has_paragraph, has_answer = before["paragraph_score"] >= paragraph, before["answer_score"] >= answer
        assert record["paragraph"] == (before["paragraph"] if has_paragraph else None)
        assert record["answer"] == (before["answer"] if has_answer else "")
        assert record["type"] == (before["type"] if has_answer else "paragraph" if has_paragraph else "none")
        assert has_answer or record["start"] is record["answer_paragraph"] is None
        types.add(record["type"])
    assert types >= {"none", "span", "paragraph"}


@pytest.mark.slow
def test_truncated_paragraphs_are_no_answers(fine_tuned: Make) -> None:
    """Every length of a row is tried."""
    made = fine_tuned("document_qa")
    examples = list(read_records(made.raw / "test.jsonl", "document_qa"))
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    for limit in range(40, 52):
        settings = replace(model.pipeline.settings, max_source_tokens=limit, long_source="truncate")
        model.pipeline.settings = settings
        predictions = list(model.predictions(examples, 4, options=DocumentQuestionOptions(max_answer_length=4)))
        for example, prediction in zip(examples, predictions, strict=True):
            (row,) = model.pipeline.rows(example)
            numbers = {each for each in row.elements if each is not None}
            assert prediction.paragraph in numbers
            assert prediction.answer_paragraph in {None, *numbers}
            assert len(numbers) < len(example.elements)


def test_windows_without_text_do_not_count() -> None:
    """The best window is one with text, and of equal paragraphs in two windows the better one counts."""
    empty = DocumentWindow(WindowAnswers(-9.0, []), {}, [0.0] * 5)
    low = DocumentWindow(WindowAnswers(1.0, [ScoredSpan(3.0, 0, 1, 1)]), {0: -1.0, 1: 2.0}, [0.0, 1.0, 0.0, 0.0, 0.0])
    high = DocumentWindow(WindowAnswers(1.0, [ScoredSpan(2.0, 2, 3, 1)]), {1: 5.0, 2: 1.0}, [0.0, 4.0, 0.0, 0.0, 0.0])
    record = DocumentQuestion("q", "which?", ("a b", "c d", "e"))
    answer = answer_document(record, [empty, low, high], DocumentQuestionOptions(n_best=2))
    assert answer.paragraph == 1
    assert (answer.answer, answer.start) == ("d", 2)
    assert answer.paragraph_score == pytest.approx(5 + math.log(math.exp(4) + 3))
    best = [(each["text"], each["score"]) for each in answer.n_best]
    assert best == [("d", pytest.approx(5.0)), ("c", pytest.approx(3.0))]


@pytest.mark.slow
def test_lines_have_no_offsets_of_the_release(fine_tuned: Make, tmp_path: Path) -> None:
    """They are for the official file alone; the user's own `meta` stays."""
    records = list(find_reader(NAME).read("valid", write_release(NAME, tmp_path / "release"), Counter()))
    mine = [replace(record, meta={**(record.meta or {}), "mine": n}) for n, record in enumerate(records)]
    source = tmp_path / "valid.jsonl"
    source.write_text("".join(json_line(record) + "\n" for record in mine), encoding="utf-8")
    made, out = fine_tuned("document_qa"), tmp_path / "out" / "p.jsonl"
    assert hat("predict", made.checkpoint, source, "--data", made.data / "bin", "--out", out, "--device", "cpu") == 0
    predicted = read_lines(out)
    assert [line["meta"] for line in predicted] == [{"mine": n} for n in range(len(records))]
    official = (tmp_path / "out" / FILES[NAME]).read_text()
    assert all(f'"example_id": {line["id"]},' in official for line in predicted)
